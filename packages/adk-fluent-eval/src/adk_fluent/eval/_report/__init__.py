"""Reports, statistics and their formats."""
