"""Metrics: which a case is scored by, and what computes each."""
