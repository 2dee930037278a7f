"""Which files there are."""

from evmperf.grafana import alerts, dashboards, driver, query
from evmperf.model.places import project

FOLDER = project("dashboards")
DASHBOARDS = {query.FLUX: "grafana", query.SQL: "grafana-sql"}
"""The folders below FOLDER that Grafana reads, and only these."""
ALERTS = {
    query.FLUX: "provisioning/alerting/evmperf.yaml",
    query.SQL: "provisioning-sql/alerting/evmperf.yaml",
}


def files(*languages: str) -> dict[str, str]:
    """Every generated file (of some languages only): its name below dashboards/, and its text."""
    general = (dashboards.fleet, dashboards.boot, dashboards.compare, dashboards.lab)
    builders = [*(make() for make in general), *driver.dashboards()]
    made = {}
    for language in languages or DASHBOARDS:
        for builder in builders:
            name = f"{DASHBOARDS[language]}/{builder.uid.removeprefix('evmperf-')}.json"
            made[name] = builder.json(language)
        made[ALERTS[language]] = alerts.text(language)
    return made
