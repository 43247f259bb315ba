"""Scripts: what models answer in tests, for all that follows one: backends, models, emulators."""
