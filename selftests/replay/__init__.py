"""Replaying recorded consoles: `python -m selftests.replay FILE --board am64x.yaml`."""
