"""A confirmation below a bare `root_agent`."""
