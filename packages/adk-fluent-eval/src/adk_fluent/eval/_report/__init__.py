"""What a suite came to: its figures, how they compare, and the forms in which they are read."""
