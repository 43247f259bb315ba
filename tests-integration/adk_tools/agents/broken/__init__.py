"""A pipeline that fails."""
