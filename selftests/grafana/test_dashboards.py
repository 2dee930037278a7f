"""The dashboards against a real InfluxDB, and against Grafana's own types."""

import json
import re
import shutil
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from evmperf.benchmarks.families.boot import SPANS
from evmperf.judge.published import releases as gather
from evmperf.judge.published.record import release_key
from evmperf.measure.runs.spool import read_results, read_run
from evmperf.model.alarm import AlarmState, MetricAlarm
from evmperf.model.results import Status
from evmperf.model.verdict import GoalWord, Outcome
from evmperf.publish.grafana.write import DASHBOARDS, files
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.push import push, waiting
from selftests.support import programs, spools
from selftests.support.grafana import DAY, START, choose, interpolated, panels
from selftests.support.influxd import flux

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "dashboards"
NPM = ROOT / "selftests/npm"
MADE = sorted(Path(name).name for name in files() if name.endswith(".json"))
RECORDED_AT = datetime.fromtimestamp(read_run(spools.RECORDED).started_ns / 1e9, UTC)
BOARD = "am64xx-hsevm"
ADDRESSES = {"job": "https://gitlab.lab/jobs/7", "results": "https://lab/results"}
SUBJECTS = [(os, place) for os in ("Linux", "RT-linux") for place in ("p1", "p2")]
LEVEL = {"Linux": 100.0, "RT-linux": 60.0}
SPAN = START - DAY, START + 3 * DAY
GIVEN = {"board": [BOARD], "kind": ["nightly"], "driver": ["emmc"], "table": ["emmc_ext4"]}
SIDES = {
    "board_a": [BOARD],
    "os_a": ["Linux"],
    "kind_a": ["nightly"],
    "place_a": ["p1"],
    "release_a": ["11.00"],
    "board_b": [BOARD],
    "os_b": ["RT-linux"],
    "kind_b": ["nightly"],
    "place_b": ["p2"],
    "release_b": ["11.01"],
    "metric": ["write_throughput:MB/s"],
}


def send(results, config):
    """Send all runs of a folder."""
    with Store(config) as store:
        said = list(push(store, waiting(results, config)))
    assert not [pushed for pushed in said if pushed.problems]


@pytest.fixture(scope="module")
def runs_folder(tmp_path_factory):
    """A run of the virtual EVM, all the imported guides, and two nights of a board with two systems in two
    places, the figures of Linux and RT far apart; one alarm is open, and one goal is missed.
    """
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(gather.BASELINES, folder, dirs_exist_ok=True)
    spools.recorded(folder)
    for night, release in enumerate(["11.00", "11.01"]):
        for number, (os, place) in enumerate(SUBJECTS):
            start = spools.a_run(night).started_ns + number * 3600 * 10**9
            written = spools.of_catalogue(
                folder,
                rows=3,
                id=f"{release}-{os}-{place}",
                board=BOARD,
                os=os,
                place=place,
                release=release,
                kind="nightly",
                started_ns=start,
                ended_ns=start + 10**12,
                addresses=ADDRESSES,
            )
            of_os = spools.a_result(
                read_run(written), 900, [LEVEL[os], LEVEL[os] + 1], case="told apart", profile="full"
            )
            spools.spool.append_records(written, [of_os])
            if (night, number) == (1, 0):
                alarm = MetricAlarm(AlarmState.OPEN, written.name, written.name, size=-0.2)
                spools.judge(written, "worse", "by 20 %", -0.2, alarm=alarm, **spools.GOAL)
    return folder


@pytest.fixture(scope="module")
def bucket(influxd, runs_folder):
    config = influxd.bucket()
    send(runs_folder, config)
    return config


@pytest.fixture(scope="module")
def dashboards():
    return {Path(name).name: json.loads(text) for name, text in files().items() if name.endswith(".json")}


def given(name):
    return (
        SIDES | {"driver": ["emmc"], "table": ["emmc_ext4"]}
        if name == "compare.json"
        else ({"board": [BOARD], "kind": ["nightly"]} if name == "boot.json" else GIVEN)
    )


def asked(dashboard, bucket, title, span=SPAN, target=0, **more):
    """The rows of one panel."""
    values = choose(
        dashboard, bucket, given(f"{dashboard['uid'].removeprefix('evmperf-')}.json") | more, *span
    )
    (query,) = [p["targets"][target]["query"] for p in panels(dashboard) if p["title"] == title]
    return flux(bucket, interpolated(query, bucket, values, *span))


@pytest.mark.parametrize("name", MADE)
def test_every_panel_variable_and_mark_has_rows(bucket, dashboards, name):
    dashboard = dashboards[name]
    values = choose(dashboard, bucket, given(name), *SPAN)
    for panel in panels(dashboard):
        for target in panel["targets"]:
            assert flux(bucket, interpolated(target["query"], bucket, values, *SPAN)), panel["title"]
    for mark in dashboard["annotations"]["list"]:
        assert flux(bucket, interpolated(mark["target"]["query"], bucket, values, *SPAN))


@pytest.mark.parametrize("name", MADE)
def test_a_panel_of_what_was_not_measured_has_no_data_and_no_error(influxd, dashboards, name, tmp_path):
    """A database that holds one run with one table."""
    run = spools.a_run(0, board=BOARD, profile="full")
    spools.write(tmp_path, run, [spools.a_result(run, 0)])
    little = influxd.bucket()
    send(tmp_path, little)
    values = {}
    for variable in dashboards[name]["templating"]["list"][1:]:
        known = flux(little, interpolated(variable["query"], little, values, *SPAN))
        chosen = re.compile(variable.get("regex", "/.*/").strip("/"))
        values[variable["name"]] = [row["_value"] for row in known if chosen.search(row["_value"])] or [""]
    for panel in panels(dashboards[name]):
        for target in panel["targets"]:
            flux(little, interpolated(target["query"], little, values, *SPAN))  # fails with the error


@pytest.mark.parametrize("name", ["fleet.json", "board.json", "boot.json", "lab.json", "driver.json"])
def test_a_run_of_the_virtual_evm_shows(bucket, dashboards, name):
    """With the run's own figures in the panels; nobody has published any of such a board."""
    span = RECORDED_AT - DAY, RECORDED_AT + DAY
    values = choose(dashboards[name], bucket, {"board": ["virtual-evm"]}, *span)
    without = {
        panel["title"]
        for panel in panels(dashboards[name])
        if not flux(bucket, interpolated(panel["targets"][0]["query"], bucket, values, *span))
    }
    # Nothing failed in this run, and the board has no goals.
    assert without <= {"Failed boots", "Cases not measured, or only after a retry", "Alarms", "Goals"}


def test_systems_and_places_are_lines_of_their_own_with_the_figures_of_the_spool(
    bucket, runs_folder, dashboards
):
    rows = asked(
        dashboards["driver.json"], bucket, "${metric}: mean of each run", metric=["write_throughput:MB/s"]
    )
    shown = {}
    for row in rows:
        shown.setdefault((row["os"], row["place"], row["case"]), []).append(float(row["_value"]))
    expected = {}
    for os, place in SUBJECTS:
        for release in ("11.00", "11.01"):
            for result in read_results(runs_folder / f"{release}-{os}-{place}"):
                if result.benchmark == "emmc_ext4" and (values := result.values("write_throughput")):
                    expected.setdefault((os, place, result.case), []).append(statistics.fmean(values))
    assert shown == {key: pytest.approx(values) for key, values in expected.items()}
    assert shown["Linux", "p1", "told apart"] == [100.5, 100.5]
    ends = [
        {
            float(row["_value"])
            for row in asked(
                dashboards["driver.json"],
                bucket,
                "${metric}: lowest and highest sample",
                target=target,
                metric=["write_throughput:MB/s"],
                case=["told apart"],
                os=["RT-linux"],
            )
        }
        for target in (0, 1)
    ]
    assert ends == [{60.0}, {61.0}]


def test_comparing_shows_what_was_measured_on_each_side(bucket, dashboards):
    rows = asked(dashboards["compare.json"], bucket, "All cases of ${table}")
    (told_apart,) = [row for row in rows if row["case"] == "told apart"]
    assert [float(told_apart[side]) for side in ("A", "B")] == [100.5, 60.5]
    guide = {"kind_b": ["guide"], "place_b": ["-"], "release_b": ["11.01.05.03"], "os_b": ["RT-linux"]}
    newest = max(
        (e.run.release for e in gather.published() if (e.run.board, e.run.os) == (BOARD, "RT-linux")),
        key=release_key,
    )
    guide["release_b"] = [newest]
    assert asked(dashboards["compare.json"], bucket, "All cases of ${table}", **guide)


def test_the_latest_published_figure_is_of_the_latest_release_and_system(bucket, dashboards):
    """By the numbers of releases: 9.1 is before 12.00."""
    of_board = [e for e in gather.published() if e.run.board == BOARD]
    latest = {}
    for entry in sorted(of_board, key=lambda e: release_key(e.run.release)):
        for result in entry.results():
            for cell in result.published:
                if (result.benchmark, cell.metric) == ("emmc_ext4", "write_throughput"):
                    latest[entry.run.os, result.case] = cell.mean
    rows = asked(
        dashboards["driver.json"],
        bucket,
        "${metric}: mean of each run",
        target=1,
        metric=["write_throughput:MB/s"],
    )
    shown = {(row["os"], row["case"]): float(row["_value"]) for row in rows}
    assert len(rows) == 2 * len(shown)
    assert shown == latest


def test_one_bad_subject_of_four_is_counted_and_named(bucket, dashboards):
    fleet = dashboards["fleet.json"]
    (counts,) = asked(fleet, bucket, "Of all last runs")
    assert (counts["Subjects"], counts["With worse figures"]) == ("4", "1")
    runs = asked(fleet, bucket, "Last run of every subject")
    assert {(row["os"], row["place"]): row["worse"] for row in runs} == {
        subject: str(int(subject == SUBJECTS[0])) for subject in SUBJECTS
    }
    assert {row["report_url"] for row in runs} == {
        f"https://lab/results/11.01-{os}-{place}/report.html" for os, place in SUBJECTS
    }
    (alarm,) = asked(fleet, bucket, "Alarms")
    assert (alarm["os"], alarm["state"], alarm["change"]) == ("Linux", "open", "-20.0 %")
    (goal,) = asked(fleet, bucket, "Goals")
    assert (goal["reached"], goal["owner"]) == ("missed", "storage")


def test_nights_and_places_are_states_over_time(bucket, dashboards):
    nights = asked(dashboards["fleet.json"], bucket, "Nights")
    of_first = [row["_value"] for row in nights if (row["os"], row["place"]) == SUBJECTS[0]]
    assert of_first == ["not judged", "worse"]
    places = asked(dashboards["lab.json"], bucket, "Places")
    assert [row["_value"] for row in places if row["place"] == "p1"] == [BOARD, ""] * 4


def test_phases_of_a_boot_add_up_to_what_the_panel_says(bucket, dashboards):
    boot = dashboards["boot.json"]
    (panel,) = [p for p in panels(boot) if p["title"] == "From power-on to the prompt"]
    spans = {metric: (begin, end) for metric, begin, end, *_ in SPANS}
    metrics = [re.search(r'_field == "(\w+):s"', target["query"])[1] for target in panel["targets"]]
    ends = [spans[metric] for metric in metrics]
    assert [begin for begin, _ in ends[1:]] == [end for _, end in ends[:-1]]  # without a gap
    assert (ends[0][0].value, ends[-1][1].value) == ("power_on", "prompt")
    titles = {metric: title for metric, *_, title, _ in SPANS}
    shown = [re.search(r'_value: "(.*?)"', target["query"])[1] for target in panel["targets"]]
    assert shown == [titles[metric] for metric in metrics]
    (cycles,) = [p for p in panels(boot) if p["title"] == "Boot time of every cycle"]
    assert [end.value for end in spans["boot_time"]] == ["starting_kernel", "prompt"]
    assert "start of the kernel" in cycles["description"]


def test_runs_are_chosen_by_what_they_were_for(bucket, dashboards):
    # From the recorded run, which was made at a desk, to the nights that are made up.
    span = min(RECORDED_AT, START) - DAY, max(RECORDED_AT, START) + 3 * DAY
    boards = {
        kind: {
            row["board"]
            for row in asked(dashboards["fleet.json"], bucket, "Last run of every subject", span, kind=[kind])
        }
        for kind in ("nightly", "desk")
    }
    assert boards == {"nightly": {BOARD}, "desk": {"virtual-evm"}}


def test_releases_and_alarms_are_marked(bucket, dashboards):
    texts = [
        [
            row["text"]
            for row in flux(bucket, interpolated(m["target"]["query"], bucket, {"board": [BOARD]}, *SPAN))
        ]
        for m in dashboards["boot.json"]["annotations"]["list"]
    ]
    assert texts == [["11.00", "11.01"], ["open: emmc_ext4 102400 write_throughput -20.0 %"]]


def test_every_panel_says_what_it_shows_and_asks_the_chosen_database(dashboards):
    known = {d["uid"]: {v["name"] for v in d["templating"]["list"]} for d in dashboards.values()}
    for name, dashboard in dashboards.items():
        first = dashboard["templating"]["list"][0]
        assert (first["type"], first["name"], first["query"]) == ("datasource", "datasource", "influxdb")
        assert first["current"]["value"] == "evmperf-influxdb"
        for panel in panels(dashboard):
            assert len(panel.get("description", "")) > 20, f"{name}: {panel['title']}"
            assert {t["datasource"]["uid"] for t in panel["targets"]} == {"${datasource}"}
            if panel["type"] == "table":
                (organised,) = [t["options"] for t in panel["transformations"]]
                headings = organised["renameByName"]
                assert set(headings) == set(organised["indexByName"])
                assert all(heading[0].isupper() for heading in headings.values())
        # Each link leads to variables that are there.
        for target, variables in re.findall(r"/d/(evmperf-\w+)\?([^\"]*)", json.dumps(dashboard)):
            assert set(re.findall(r"var-(\w+)=", variables)) <= known[target]


def test_a_panel_asks_for_its_subject_whole(dashboards):
    """No query takes boards by their name alone."""
    parts = {"os", "place", "lab", "kind", "profile"}
    for dashboard in dashboards.values():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                said = set(re.findall(r"r\.(\w+) (?:==|=~)", target["query"]))
                is_guides = 'r.kind == "guide"' in target["query"]  # a guide is of a board and a system
                assert (parts <= said) or is_guides, f"{panel['title']}: {parts - said}"


def test_fields_are_chosen_before_they_are_put_side_by_side(dashboards):
    """A query that pivots all fields of all cases took minutes and gigabytes of InfluxDB."""
    queries = [t["query"] for d in dashboards.values() for p in panels(d) for t in p["targets"]]
    pivoting = [query for query in queries if 'columnKey: ["_field"]' in query]
    assert len(pivoting) > 5
    for query in queries:
        assert "r._field" in query.partition("pivot(")[0] or "mean_of" in query, query
        assert "contains(" not in query


def test_words_of_the_dashboards_are_those_of_evmperf(dashboards):
    by_title = {panel["title"]: panel for panel in panels(dashboards["fleet.json"])}
    shown = by_title["Nights"]["fieldConfig"]["defaults"]["mappings"][0]["options"]
    assert set(shown) == {*Outcome, *Status, *AlarmState, GoalWord.MISSED, GoalWord.MET, "unknown"}


def test_the_generated_files_of_the_repository_are_current_and_few():
    made = files()
    stale = [name for name, text in made.items() if (FOLDER / name).read_text() != text]
    extra = {path.name for path in (FOLDER / DASHBOARDS).glob("*.json")} - set(MADE)
    assert (stale, extra) == ([], set()), "make dashboards"
    assert len(MADE) == 6
    assert sum(text.count("\n") for name, text in made.items() if name.endswith(".json")) <= 6000


def compose_faults(data):
    """What the Compose Specification's schema says of a file."""
    command = ["node", str(NPM / "compose.mjs")]
    return subprocess.run(command, input=json.dumps(data), capture_output=True, text=True, check=False).stdout


@pytest.mark.browser
def test_the_compose_file_gives_each_container_what_it_needs():
    data = yaml.safe_load((FOLDER / "docker-compose.yml").read_text())
    assert compose_faults(data) == ""
    services = data["services"]
    for name, service in services.items():
        assert service["read_only"], name
        assert "healthcheck" in service or name == "grafana-token"
        for volume in service["volumes"]:
            source, _, mode = volume.partition(":")[0], *volume.rpartition(":")[1:]
            assert mode == "ro" or source in data["volumes"], f"{name}: {volume} can be written"
            assert not source.startswith(".") or (FOLDER / source).exists(), volume
    grafana = services["grafana"]
    assert "influx_token" not in grafana["secrets"]
    assert not [key for key in grafana["environment"] if re.search("TOKEN|PASSWORD$", key)]
    assert grafana["image"].startswith("grafana/grafana:13.")
    (folder,) = [v.partition(":")[0] for v in grafana["volumes"] if "dashboards" in v]
    assert folder == f"./{DASHBOARDS}"
    source = (FOLDER / "provisioning/datasources/influxdb.yaml").read_text()
    (token,) = re.findall(r"\$__file\{(.*?)/token\}", source)
    assert f"grafana-token:{token}:ro" in grafana["volumes"]


@pytest.mark.browser
def test_everything_fits_grafanas_types(tmp_path):
    """The whole file against Dashboard, each query against DataQuery, the options and field settings of
    each panel against the types of its kind. A field that Grafana does not know is an error.
    """
    subprocess.run([sys.executable, "-m", "evmperf.publish.grafana", tmp_path], check=True)
    there = tmp_path / DASHBOARDS
    done = programs.run("node", str(NPM / "types.mjs"), *(str(there / name) for name in MADE))
    assert done.returncode == 0, done.stdout + done.stderr
    broken = json.loads((there / "fleet.json").read_text())
    panels(broken)[0]["options"] = None
    panels(broken)[0]["targets"][0]["misspelt"] = panels(broken)[0]["targets"][0].pop("query")
    drawn = next(panel for panel in panels(broken) if panel["type"] == "timeseries")
    drawn["fieldConfig"]["defaults"]["custom"]["drawStyle"] = "scribble"
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken))
    done = programs.run("node", str(NPM / "types.mjs"), str(path))
    assert done.returncode == 1
    for fault in ("null", "misspelt", "scribble"):
        assert fault in done.stdout
