"""Grafana dashboards and alert rules as code: `python -m evmperf.publish.grafana` writes them."""
