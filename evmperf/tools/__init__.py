"""Command lines and parsers of the benchmarks' tools: pure functions, one module per tool."""
