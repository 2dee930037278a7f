"""Reading published performance guides (their tables: evmperf.guides.published)."""
