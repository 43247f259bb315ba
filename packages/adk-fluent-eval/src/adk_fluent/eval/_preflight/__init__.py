"""What is looked at before any model is called."""
