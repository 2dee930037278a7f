"""Command lines and parsers of the benchmarks' tools: pure functions, one module per tool.

Parsers raise RefusedOutput for text that is not whole, contradicts itself, or holds no reliable figure.
"""
