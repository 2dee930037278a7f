"""Hooks and fixtures of your own go here.

evmperf's come as plugins by entry points (pyproject.toml), which `make setup` installs.
"""
