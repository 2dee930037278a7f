"""The alerts against a real InfluxDB, as Grafana's expression engine takes its answers."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from evmperf.measure.runs.spool import VERDICTS, append_records
from evmperf.model.alarm import AlarmState, MetricAlarm
from evmperf.model.records import VerdictRecord
from evmperf.publish.grafana.write import ALERTS, DASHBOARDS, files
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.push import push
from selftests.support import spools
from selftests.support.grafana import interpolated, panels

FOLDER = Path(__file__).parents[2] / "dashboards"
HOUR_NS = 3_600_000_000_000
OPEN = MetricAlarm(AlarmState.OPEN, "since", "since", size=-0.1)
ALL_ALARMS = 'from(bucket: bucket) |> range(start: -1d) |> filter(fn: (r) => r._measurement == "alarms")'


def rules():
    return {rule["uid"]: rule for rule in yaml.safe_load(files()[ALERTS])["groups"][0]["rules"]}


def fires(uid, config, now=None):
    """What Grafana's expression engine makes of a rule: whether it fires, by board, system and figure.

    A frame without times is taken as numbers only if it is the one frame of the answer, and has
    names and exactly one number in each row (Grafana's "numeric long" format).
    """
    now = now or datetime.now(UTC)
    rule = rules()[uid]
    ask, threshold = rule["data"]
    assert rule["condition"] == threshold["refId"]
    begin = now - timedelta(seconds=ask["relativeTimeRange"]["from"])
    text = interpolated(ask["model"]["query"], config, {}, begin, now)
    with Store(config) as store:
        answer = [(row["table"], row) for row in store.query(text)]
    assert len({table for table, _ in answer}) <= 1, "Grafana drops several tables without times"
    ((evaluator,),) = [[c["evaluator"] for c in threshold["model"]["conditions"]]]
    assert evaluator["type"] == "gt"
    found = {}
    for _, row in answer:
        (value,) = [v for v in row.values() if isinstance(v, float)]
        assert not [v for v in row.values() if isinstance(v, datetime)]
        labels = {n: v for n, v in row.items() if isinstance(v, str) and n != "result"}
        assert {"board", "os", "place", "lab", "kind", "profile"} <= set(labels)
        key = " ".join(labels.get(n, "") for n in ("board", "os", "place", "metric")).strip()
        found[key] = value > evaluator["params"][0]
    return found


def night(folder, config, number, age_h, alarm=None, *, board="evm", os="Linux", kind="nightly", **more):
    """Send the run of a night, judged."""
    began = time.time_ns() - age_h * HOUR_NS
    run = spools.a_run(
        id=f"{board}-{os}-{kind}-{number}",
        board=board,
        os=os,
        kind=kind,
        place="p1",
        started_ns=began,
        ended_ns=began,
    )
    written = spools.write(folder, run, [spools.a_result(run)])
    verdict = VerdictRecord(
        "emmc_ext4",
        "case 0",
        "write_throughput",
        "emmc",
        "worse" if alarm else "same",
        "-",
        "last:20",
        alarm=alarm,
        **more,
    )
    append_records(written, [verdict], VERDICTS)
    with Store(config) as store:
        assert not [pushed for pushed in push(store, [written]) if pushed.problems]
    return written


FIGURE = "evm Linux p1 write_throughput"


def test_a_loss_in_the_first_of_two_runs_of_a_night_fires(influxd, tmp_path):
    """Linux with a loss and a missed goal, an hour later RT without."""
    config = influxd.bucket()
    night(tmp_path, config, 1, 5, OPEN, **spools.GOAL)
    night(tmp_path, config, 1, 4, os="RT-linux")
    assert fires("evmperf-worse", config) == {FIGURE: True}
    assert fires("evmperf-goal", config) == {FIGURE: True}
    assert fires("evmperf-silent", config) == {"evm Linux p1": False, "evm RT-linux p1": False}


@pytest.mark.parametrize("end", [AlarmState.RECOVERED, AlarmState.ACCEPTED, AlarmState.WITHDRAWN])
def test_an_alarm_fires_from_its_opening_to_its_end(influxd, tmp_path, end):
    config = influxd.bucket()
    life = [AlarmState.SUSPECTED, AlarmState.OPEN, AlarmState.CONFIRMED, end]
    said = []
    for number, state in enumerate(life):
        night(tmp_path, config, number, 100 - 24 * number, replace(OPEN, state=state, nights=number))
        said.append(fires("evmperf-worse", config)[FIGURE])
    assert said == [False, True, True, False]
    night(tmp_path, config, 9, 1)
    assert fires("evmperf-worse", config) == {FIGURE: False}


def test_what_became_better_or_was_judged_again_fires_no_more(influxd, tmp_path):
    config = influxd.bucket()
    night(tmp_path, config, 1, 5, replace(OPEN, size=0.1))
    assert fires("evmperf-worse", config) == {FIGURE: False}
    folder = night(tmp_path, config, 2, 3, OPEN)
    assert fires("evmperf-worse", config) == {FIGURE: True}
    append_records(
        folder, [VerdictRecord("emmc_ext4", "case 0", "write_throughput", "emmc", "same")], VERDICTS
    )
    with Store(config) as store:
        list(push(store, [folder]))
    assert fires("evmperf-worse", config) == {FIGURE: False}


def test_a_loss_where_there_was_none_is_told_in_its_unit(influxd, tmp_path):
    """Of 0 there are no shares: 3 % of all frames lost are not 300 %."""
    config = influxd.bucket()
    night(tmp_path, config, 1, 5, replace(OPEN, size=-3.0, unit="%"))
    assert fires("evmperf-worse", config) == {FIGURE: True}
    with Store(config) as store:
        rows = list(store.query(ALL_ALARMS))
    said = {point["_field"]: point["_value"] for point in rows}
    assert (said["change"], said["unit"]) == ("-3 %", "%")
    night(tmp_path, config, 2, 1, replace(OPEN, size=-3.0, unit="%", state=AlarmState.RECOVERED))
    assert fires("evmperf-worse", config) == {FIGURE: False}


def test_a_dead_system_is_missed_although_another_one_reports(influxd, tmp_path):
    """In whole hours, for a month and longer, and no run at a desk makes up for it."""
    config = influxd.bucket()
    for number, age_h in enumerate([24 * 40, 5]):
        night(tmp_path, config, number, age_h)
    night(tmp_path, config, 0, 24 * 40, os="RT-linux")
    night(tmp_path, config, 1, 1, os="RT-linux", kind="desk")
    assert fires("evmperf-silent", config) == {"evm Linux p1": False, "evm RT-linux p1": True}
    assert rules()["evmperf-silent"]["noDataState"] == "Alerting"


def test_alerts_reach_somebody_and_leave_others_policies():
    data = yaml.safe_load(files()[ALERTS])
    (contact,) = data["contactPoints"]
    assert "policies" not in data
    for rule in rules().values():
        assert rule["notification_settings"]["receiver"] == contact["name"]
        assert rule["notification_settings"]["repeat_interval"] == "1w"
    (receiver,) = contact["receivers"]
    compose = yaml.safe_load((FOLDER / "docker-compose.yml").read_text())
    given = compose["services"]["grafana"]["environment"]
    assert receiver["settings"]["addresses"].removeprefix("$") in given
    assert {"GF_SMTP_ENABLED", "GF_SMTP_HOST", "GF_SMTP_FROM_ADDRESS"} <= set(given)
    webhook = yaml.safe_load((FOLDER / "webhook.yaml").read_text())
    assert [point["name"] for point in webhook["contactPoints"]] == [contact["name"]]


def test_alerts_lead_to_their_panels_and_ask_the_database_that_is_provisioned():
    (source,) = yaml.safe_load((FOLDER / "provisioning/datasources/influxdb.yaml").read_text())["datasources"]
    asked = {step["datasourceUid"] for rule in rules().values() for step in rule["data"]}
    assert asked == {source["uid"], "__expr__"}
    fleet = json.loads(files()[f"{DASHBOARDS}/fleet.json"])
    titles = {str(panel["id"]): panel["title"] for panel in panels(fleet)}
    led = {uid: titles[rule["annotations"]["__panelId__"]] for uid, rule in rules().items()}
    assert led == {
        "evmperf-worse": "Alarms",
        "evmperf-goal": "Goals",
        "evmperf-silent": "Last run of every subject",
    }
    assert {rule["annotations"]["__dashboardUid__"] for rule in rules().values()} == {fleet["uid"]}
