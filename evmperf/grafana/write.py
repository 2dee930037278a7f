"""Which files there are."""

from evmperf.grafana import alerts, boot, compare, driver, fleet, lab
from evmperf.model.places import project

FOLDER = project("dashboards")
DASHBOARDS = "grafana"
"""The folder below FOLDER that Grafana reads, and only that."""


def files() -> dict[str, str]:
    """Every generated file: its name below dashboards/, and its text."""
    builders = [
        fleet.dashboard(),
        boot.dashboard(),
        compare.dashboard(),
        lab.dashboard(),
        *driver.dashboards(),
    ]
    made = {f"{DASHBOARDS}/{b.uid.removeprefix('evmperf-')}.json": b.json() for b in builders}
    return {**made, "provisioning/alerting/evmperf.yaml": alerts.text()}
