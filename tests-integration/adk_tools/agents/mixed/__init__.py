"""All arrangements in one App."""
