"""Cases, their turns, judges, suites and gates."""
