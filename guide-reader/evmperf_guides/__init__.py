"""Reading published performance guides (their tables: evmperf.judge.published)."""
