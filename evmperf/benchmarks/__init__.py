"""Benchmarks: what one is, the catalogue, what tables share, and one module a table."""
