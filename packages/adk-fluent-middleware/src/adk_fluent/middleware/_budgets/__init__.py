"""How many calls and tokens a run, a session or a user may have."""
