"""Finding the board on a desk: what listens on serial ports and SSH, what it is, and its file."""
