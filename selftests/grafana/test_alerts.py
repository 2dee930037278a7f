"""The alerts against a real InfluxDB, as Grafana's expression engine takes its answers."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from evmperf.measure.runs.spool import append_verdicts
from evmperf.publish.grafana.write import ALERTS, files
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.push import RunPush
from selftests.support import spools
from selftests.support.grafana import interpolated

FOLDER = Path(__file__).parents[2] / "dashboards"


@pytest.fixture(scope="module")
def three_boards(influxd, tmp_path_factory):
    """A bucket with nightly runs of three boards (one with a worse figure, one late), and a run at
    a desk that is worse and newer than its board's night.
    """
    results = tmp_path_factory.mktemp("nights")
    now = time.time_ns()
    hours = 3_600_000_000_000
    config = influxd.bucket()
    for board, kind, age_h, worse in (
        ("fine", "nightly", 5, 0),
        ("worse", "nightly", 5, 2),
        ("late", "nightly", 40, 0),
        ("fine", "desk", 1, 3),
    ):
        run = spools.a_run(id=f"{board}-{kind}", board=board, kind=kind, started_ns=now - age_h * hours)
        folder = spools.write(results, run, [spools.a_result(run)])
        for number in range(worse):
            verdict = {
                "record": "verdict",
                "benchmark": "emmc_ext4",
                "case": f"case {number}",
                "metric": "write_throughput",
                "driver": "emmc",
                "verdict": "worse",
                "reason": "-",
                "baseline": "last:20",
                **(spools.GOAL if kind == "nightly" and not number else {}),
            }
            append_verdicts(folder, [verdict])
        with Store(config) as store:
            RunPush.of(store, folder).send()
    return config


def fires(rule, config):
    """What Grafana's expression engine makes of a rule: whether it fires, by board.

    A frame without times is taken as numbers only if it is the one frame of the answer, and has
    names and exactly one number in each row (Grafana's "numeric long" format).
    """
    now = datetime.now(UTC)
    ask, threshold = rule["data"]
    assert rule["condition"] == threshold["refId"]
    begin = now - timedelta(seconds=ask["relativeTimeRange"]["from"])
    text = interpolated(ask["model"]["query"], config, {}, begin, now)
    with Store(config) as store:
        answer = [(row.table, row.values) for row in store.query(text)]
    tables = [[v for t, v in answer if t == number] for number in sorted({t for t, _ in answer})]
    assert len(tables) == 1, "Grafana drops several tables without times"
    ((evaluator,),) = [[c["evaluator"] for c in threshold["model"]["conditions"]]]
    assert evaluator["type"] == "gt"
    found = {}
    for row in tables[0]:
        (value,) = [v for v in row.values() if isinstance(v, float)]
        labels = {n: v for n, v in row.items() if isinstance(v, str) and n != "result"}
        assert "board" in labels
        found[labels["board"]] = value > evaluator["params"][0]
    return found


def test_alerts_fire_for_the_boards_that_they_are_about(three_boards):
    rules = yaml.safe_load(files()[ALERTS])["groups"][0]["rules"]
    answers = {rule["uid"]: fires(rule, three_boards) for rule in rules}
    assert answers["evmperf-worse"] == {"fine": False, "worse": True, "late": False}
    assert answers["evmperf-goal"] == {"worse": True}
    assert answers["evmperf-silent"] == {"fine": False, "worse": False, "late": True}


def test_alerts_reach_somebody():
    data = yaml.safe_load(files()["provisioning/alerting/evmperf.yaml"])
    (contact,), (policy,) = data["contactPoints"], data["policies"]
    assert policy["receiver"] == contact["name"]
    compose = yaml.safe_load((FOLDER / "docker-compose.yml").read_text())
    given = compose["services"]["grafana"]["environment"]
    for receiver in contact["receivers"]:
        (setting,) = receiver["settings"].values()
        assert setting.removeprefix("$") in given


def test_alerts_ask_the_database_that_is_provisioned():
    there = FOLDER / Path(ALERTS).parents[1] / "datasources/influxdb.yaml"
    (source,) = yaml.safe_load(there.read_text())["datasources"]
    rules = yaml.safe_load(files()[ALERTS])["groups"][0]["rules"]
    asked = {step["datasourceUid"] for rule in rules for step in rule["data"]}
    assert asked == {source["uid"], "__expr__"}
