"""Runs that wait, fail or are cut off: where they stand, and how they are gone on with."""
