"""Runs on disk (the spool), and earlier runs from wherever they are kept."""
