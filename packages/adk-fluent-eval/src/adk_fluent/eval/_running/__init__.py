"""Running cases: what is run, on which engine, in whose place, and how fast."""
