"""Command lines and parsers of the tools that benchmarks run: pure functions, one module a tool."""
