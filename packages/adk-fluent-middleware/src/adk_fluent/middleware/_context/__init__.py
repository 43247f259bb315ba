"""What models are sent of long conversations."""
