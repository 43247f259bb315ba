"""Running cases."""
