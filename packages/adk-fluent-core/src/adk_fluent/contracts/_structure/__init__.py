"""Checks of how a pipeline is put together: names, values, places, and what never runs."""
