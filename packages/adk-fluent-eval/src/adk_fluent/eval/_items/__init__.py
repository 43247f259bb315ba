"""Cases as tests of pytest's; what `pytest_plugin` loads when a test has its mark."""
