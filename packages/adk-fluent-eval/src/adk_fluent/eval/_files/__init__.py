"""Suites in YAML and in the eval sets of ADK."""
