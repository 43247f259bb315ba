"""Checks of what flows between steps beside state: streams, content, and what models take of it."""
