"""Cases, their turns and judges."""
