"""A board asked what it is, for its desk and its doctor: ways to it, the question, checks, its file."""
