"""The way to InfluxDB and back: line protocol from the spool, sending it, and reading it again.

docs/results.md describes what is stored.
"""
