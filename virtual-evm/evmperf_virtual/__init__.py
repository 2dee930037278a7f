"""Virtual EVMs: what they are made of, and the bench process that plays the lab around them."""
