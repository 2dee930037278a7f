"""Labgrid's side: the only package that knows Labgrid, besides the strategies and board files."""
