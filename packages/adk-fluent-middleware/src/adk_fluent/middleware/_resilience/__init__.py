"""Calls that fail, come too often, or take too long."""
