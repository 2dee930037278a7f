"""Command lines and parsers of tools that several tables use: pure functions, one module per tool. A tool of
one table is in the table's module.

Parsers raise RefusedOutput for text that is not whole, contradicts itself, or holds no reliable figure.
"""
