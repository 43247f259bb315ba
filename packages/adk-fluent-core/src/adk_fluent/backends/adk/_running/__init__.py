"""Runs: the root agent, what runs the agents below it, and what each of them sees."""
