"""Images: reading, checking, putting on a board's medium, identifying what booted."""
