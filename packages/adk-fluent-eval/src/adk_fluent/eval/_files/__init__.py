"""Cases and results in files: YAML, CSV, JSON lines, and ADK's own formats, both ways."""
