"""A board asked what it is, for its desk and its doctor: ways to it, question, checks of the answer, its file."""
