"""Sending runs to InfluxDB as line protocol, and reading them again (docs/results.md)."""
