"""Which tools there are, and whether they run."""
