"""Models that are chosen at run time, by what their calls cost."""
