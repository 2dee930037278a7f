"""The performance guide: reading the published ones, and writing the next (tables: evmperf.published)."""
