"""The dashboards against a real InfluxDB, and against Grafana's own types."""

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime

import pytest
import yaml

from evmperf.benchmarks import catalogue
from evmperf.grafana.flux import PUBLISHED
from evmperf.grafana.write import FOLDER, files
from evmperf.influx.client import Store
from evmperf.influx.push import RunPush
from evmperf.influx.sender import waiting
from evmperf.published import releases as gather
from evmperf.runs.spool import read_run
from selftests.support import spools
from selftests.support.grafana import DAY, START, choose, interpolated, panels
from selftests.support.influxd import flux, running

NPM = FOLDER.parent / "selftests/npm"
MADE = sorted(name for name in files() if name.endswith(".json"))
RECORDED_AT = datetime.fromtimestamp(read_run(spools.RECORDED).started_ns / 1e9, UTC)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    """A lab's database: a run of the virtual EVM, all the guides that were imported, and two
    releases of everything there is on a board that a guide has, with verdicts.
    """
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(gather.BASELINES, folder, dirs_exist_ok=True)
    spools.recorded(folder)
    for number, release in enumerate(["11.00", "11.01"]):
        day = spools.a_run(number)
        latest = spools.of_catalogue(
            folder, id=f"made-up-{release}", board=BOARD, os="RT-linux", release=release,
            kind="nightly", started_ns=day.started_ns, ended_ns=day.ended_ns,
        )  # fmt: skip
    spools.judge(latest, "worse", "by 20 %", -0.2)
    with running(tmp_path_factory.mktemp("influxd") / "data") as server:
        config = server.bucket()
        with Store(config) as store:
            for run in waiting(folder, config.key, begun=False):
                pushed = RunPush.of(store, run).send()
                assert (pushed.refused, pushed.complete) == (0, True)
        yield config


@pytest.fixture(scope="module")
def dashboards():
    return {name: json.loads(text) for name, text in files().items() if name.endswith(".json")}


BOARD = "am64xx-hsevm"
GIVEN = {
    "board": [BOARD], "profile": ["full"], "board_a": [BOARD], "board_b": [BOARD],
    "release_a": ["11.00"], "release_b": ["11.01"],
}  # fmt: skip


def with_values(rows):
    """Those that say more than when and of which board."""
    about = {"", "result", "table", "_time", "board", "run"}
    return [row for row in rows if any(v for name, v in row.items() if name not in about)]


@pytest.fixture(scope="module")
def published():
    """A board that has published figures of a panel, by the panel's title and unit."""
    boards = {}
    for entry in gather.published():
        for result in entry.results():
            benchmark = catalogue.benchmarks().get(result.benchmark)
            if benchmark is None:
                continue
            case = {case.label: case for case in benchmark.cases("full")}[result.case]
            for cell in result.published:
                title = f"{benchmark.title}: {benchmark.metric(cell.metric, case).title}"
                boards[title, cell.unit] = entry.run.board
    return boards


def board_of(panel, target, published):
    """The board to look at, None where nobody has published anything."""
    if PUBLISHED not in target["query"]:
        return BOARD
    (unit,) = re.findall(r'r\.unit == "(.*?)"', target["query"])
    return published.get((panel["title"], unit))


@pytest.mark.parametrize("name", MADE)
def test_every_query_of_every_panel_returns_rows(bucket, dashboards, published, name):
    """Those for published figures where a guide has some, and only there."""
    dashboard = dashboards[name]
    begin, end = START - DAY, START + 3 * DAY
    values = choose(dashboard, bucket, GIVEN, begin, end)
    wrong = []
    for panel in panels(dashboard):
        for target in panel["targets"]:
            board = board_of(panel, target, published)
            chosen = {**values, "board": [board or BOARD]}
            query = interpolated(target["query"], bucket, chosen, begin, end)
            if bool(with_values(flux(bucket, query))) is (board is None):
                wrong.append(f"{panel['title']} {target['refId']}\n{query}")
    assert wrong == []


@pytest.mark.parametrize("name", ["fleet.json", "boot.json", "lab.json", "driver-emmc.json"])
def test_a_run_of_the_virtual_evm_shows(bucket, dashboards, name):
    """With the run's own figures in the panels; nobody has published any of such a board."""
    begin, end = RECORDED_AT - DAY, RECORDED_AT + DAY
    values = choose(dashboards[name], bucket, {"board": ["virtual-evm"]}, begin, end)
    rows = {
        panel["title"]: flux(
            bucket, interpolated(panel["targets"][0]["query"], bucket, values, begin, end)
        )
        for panel in panels(dashboards[name])
    }
    without = {title for title, found in rows.items() if not with_values(found)}
    # Nothing failed in this run.
    assert without <= {"Failed boots", "Cases that were not measured, or not at once"}


def test_a_panel_shows_mean_band_and_published_figure(bucket, dashboards):
    dashboard = dashboards["driver-emmc.json"]
    (panel,) = [p for p in panels(dashboard) if p["title"].startswith("EMMC EXT4: Write")][:1]
    begin, end = START - DAY, START + 3 * DAY
    values = choose(dashboard, bucket, GIVEN, begin, end)
    measured, published = (
        flux(bucket, interpolated(target["query"], bucket, values, begin, end))
        for target in panel["targets"]
    )
    assert len(measured) >= 2  # a point a release
    assert {"102400 mean", "102400 low", "102400 high"} <= set(measured[0])
    assert len(published) == 2
    assert published[0]["102400 published"] == published[1]["102400 published"]


def test_the_fleet_counts_worse_boards(bucket, dashboards):
    by_title = {panel["title"]: panel for panel in panels(dashboards["fleet.json"])}
    query = by_title["Boards with worse figures"]["targets"][0]["query"]
    (row,) = flux(bucket, interpolated(query, bucket, {}, START - DAY, START + 3 * DAY))
    assert row["boards"] == "1"


def test_releases_are_marked(bucket, dashboards):
    (mark,) = dashboards["boot.json"]["annotations"]["list"]
    query = interpolated(
        mark["target"]["query"], bucket, {"board": [BOARD]}, START - DAY, START + 3 * DAY
    )
    assert [row["text"] for row in flux(bucket, query)] == ["11.00 → 11.01"]


def test_alerts_ask_what_the_database_answers(bucket):
    rules = yaml.safe_load(files()["provisioning/alerting/evmperf.yaml"])["groups"][0]["rules"]
    answers = {}
    for rule in rules:
        query = rule["data"][0]["model"]["query"]
        rows = flux(bucket, interpolated(query, bucket, {}, START - DAY, START + 3 * DAY))
        answers[rule["uid"]] = {row["board"]: float(row["_value"]) for row in rows}
    assert answers["evmperf-worse"][BOARD] == 1
    assert list(answers["evmperf-silent"]) == [BOARD]


def test_every_driver_and_metric_of_the_catalogue_has_its_panel(dashboards):
    for benchmark in catalogue.benchmarks().values():
        titles = {panel["title"] for panel in panels(dashboards[f"driver-{benchmark.driver}.json"])}
        for profile in benchmark.profiles:
            for case in benchmark.cases(profile):
                for metric in benchmark.metrics_of(case):
                    assert f"{benchmark.title}: {metric.title}" in titles


def test_the_generated_files_are_current():
    stale = [
        name
        for name, text in files().items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text
    ]
    extra = {path.name for path in FOLDER.glob("*.json")} - set(files())
    assert (stale, extra) == ([], set()), "make dashboards"


def test_the_data_source_is_the_one_that_is_provisioned(dashboards):
    text = (FOLDER / "provisioning/datasources/influxdb.yaml").read_text()
    (source,) = yaml.safe_load(text)["datasources"]
    uids = {panel["datasource"]["uid"] for d in dashboards.values() for panel in panels(d)}
    assert uids == {source["uid"]}


def test_everything_fits_grafanas_types(tmp_path):
    """The whole file against Dashboard, the options and field settings of each panel against the
    types of its kind. An options field that Grafana does not know is an error.
    """
    done = subprocess.run(
        ["node", str(NPM / "types.mjs"), *(str(FOLDER / name) for name in MADE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    broken = json.loads((FOLDER / "fleet.json").read_text())
    panels(broken)[0]["options"] = None
    panels(broken)[-1]["fieldConfig"]["defaults"]["custom"]["drawStyle"] = "scribble"
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken))
    done = subprocess.run(
        ["node", str(NPM / "types.mjs"), str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "null" in done.stdout
    assert "scribble" in done.stdout
