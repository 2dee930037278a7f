"""Replaying recorded consoles: `python -m selftests.instruments.replay FILE --board am64x.yaml`."""
