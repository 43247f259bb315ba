"""Whether the data-flow analysis is right: against every way in which a pipeline can run."""
