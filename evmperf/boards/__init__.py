"""Board files: typed, checked against their vocabulary, and where they are looked for."""
