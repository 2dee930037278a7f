"""The catalogue: one module a benchmark, each with a `BENCHMARK` named like its file."""
