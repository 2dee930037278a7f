"""Writing the performance guide of a release."""
