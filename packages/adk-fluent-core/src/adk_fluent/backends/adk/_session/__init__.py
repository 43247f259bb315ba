"""Events and state: what is read of them, what is written, and what session services keep."""
