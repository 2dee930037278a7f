"""Grafana dashboards and alert rules as code: `python -m evmperf.grafana` writes dashboards/."""
