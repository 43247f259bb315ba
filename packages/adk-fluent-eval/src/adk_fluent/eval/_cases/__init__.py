"""What is evaluated: cases, their turns, the tools they expect, and who plays the user."""
