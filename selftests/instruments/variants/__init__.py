"""What the variants of figures are worth: the same row measured the other way, in turn."""
