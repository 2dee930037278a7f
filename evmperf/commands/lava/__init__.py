"""LAVA: jobs made from the catalogue, and their logs read back into the spool."""
