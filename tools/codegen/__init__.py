"""Follow ADK: what its models have, the setters made of it, and what changed between versions."""
