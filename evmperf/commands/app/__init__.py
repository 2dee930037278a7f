"""Use cases of the command line, the pytest plugin and the nights."""
