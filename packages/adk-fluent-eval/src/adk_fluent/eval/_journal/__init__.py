"""Journals: what a run has done, and whether that still holds."""
