"""Published guides: their tables as data, and the reading of them."""
