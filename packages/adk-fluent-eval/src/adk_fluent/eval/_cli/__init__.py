"""The command ``adk-fluent eval``."""
