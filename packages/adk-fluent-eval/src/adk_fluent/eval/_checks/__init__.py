"""Checks of what a case expects."""
