"""The look of every page: one style sheet, one base, one way to draw."""
