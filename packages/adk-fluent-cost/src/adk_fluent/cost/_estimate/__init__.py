"""What a pipeline will cost, from its structure and some assumptions."""
