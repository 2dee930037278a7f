"""Recorded consoles, played to the boot strategy."""
