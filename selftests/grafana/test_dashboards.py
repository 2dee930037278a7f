"""The dashboards against a real InfluxDB, and against Grafana's own types."""

import json
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families.boot import SPANS
from evmperf.boards import yamlfile
from evmperf.judge.published import releases as gather
from evmperf.measure.runs.spool import read_run
from evmperf.model.results import Status
from evmperf.model.units import Unit
from evmperf.model.verdict import GoalWord, Outcome
from evmperf.publish.grafana.write import DASHBOARDS, files
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.push import RunPush, waiting
from selftests.support import programs, spools
from selftests.support.grafana import DAY, START, choose, interpolated, panels
from selftests.support.influxd import flux

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "dashboards"
NPM = ROOT / "selftests/npm"
MADE = sorted(Path(name).name for name in files() if name.endswith(".json"))
PUBLISHED = 'r.kind == "guide"'
RECORDED_AT = datetime.fromtimestamp(read_run(spools.RECORDED).started_ns / 1e9, UTC)


@pytest.fixture(scope="module")
def bucket(influxd, tmp_path_factory):
    """A lab's database: a run of the virtual EVM, all the guides that were imported, and two
    releases of everything there is on a board that a guide has, with verdicts.
    """
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(gather.BASELINES, folder, dirs_exist_ok=True)
    spools.recorded(folder)
    for number, release in enumerate(["11.00", "11.01"]):
        day = spools.a_run(number)
        latest = spools.of_catalogue(
            folder,
            id=f"made-up-{release}",
            board=BOARD,
            os="RT-linux",
            release=release,
            kind="nightly",
            started_ns=day.started_ns,
            ended_ns=day.ended_ns,
            addresses=ADDRESSES if release == "11.01" else {},
        )
    spools.judge(latest, "worse", "by 20 %", -0.2, **spools.GOAL)
    config = influxd.bucket()
    with Store(config) as store:
        for run in waiting(folder, config.key, begun=False):
            pushed = RunPush.of(store, run).send()
            assert (pushed.refused, pushed.complete) == (0, True)
    return config


@pytest.fixture(scope="module")
def dashboards():
    return {Path(name).name: json.loads(text) for name, text in files().items() if name.endswith(".json")}


BOARD = "am64xx-hsevm"
ADDRESSES = {
    "job": "https://gitlab.lab/jobs/7",
    "pipeline": "https://gitlab.lab/pipelines/3",
    "results": "https://lab/results",
}
GIVEN = {
    "board": [BOARD],
    "profile": ["full"],
    "board_a": [BOARD],
    "board_b": [BOARD],
    "release_a": ["11.00"],
    "release_b": ["11.01"],
}


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


@pytest.fixture(scope="module")
def little(influxd, tmp_path_factory):
    """A database that holds one run with one table."""
    run = spools.a_run(0, board=BOARD, profile="full")
    folder = spools.write(tmp_path_factory.mktemp("one"), run, [spools.a_result(run, 0)])
    config = influxd.bucket()
    with Store(config) as store:
        assert RunPush.of(store, folder).send().complete
    return config


@pytest.mark.parametrize("name", MADE)
def test_a_panel_of_what_was_not_measured_has_no_data_and_no_error(little, dashboards, name):
    begin, end = START - DAY, START + DAY
    values = {}
    for variable in dashboards[name]["templating"]["list"]:
        if variable["type"] != "datasource":
            known = flux(little, interpolated(variable["query"], little, values, begin, end))
            values[variable["name"]] = GIVEN.get(variable["name"]) or [row["_value"] for row in known] or [""]
    for panel in panels(dashboards[name]):
        for target in panel["targets"]:
            flux(little, interpolated(target["query"], little, values, begin, end))  # fails with the error


@pytest.mark.parametrize("name", MADE)
def test_every_panel_variable_and_mark_has_rows(bucket, dashboards, published, name):
    """Those for published figures where a guide has some, and only there."""
    begin, end = START - DAY, START + 3 * DAY
    dashboard = dashboards[name]
    values = choose(dashboard, bucket, GIVEN, begin, end)
    for panel in panels(dashboard):
        for target in panel["targets"]:
            board = board_of(panel, target, published)
            chosen = {**values, "board": [board or BOARD]}
            found = flux(bucket, interpolated(target["query"], bucket, chosen, begin, end))
            assert bool(with_values(found)) is (board is not None), f"{panel['title']}\n{target['query']}"
    for mark in dashboard["annotations"]["list"]:
        assert flux(bucket, interpolated(mark["target"]["query"], bucket, values, begin, end))


@pytest.mark.parametrize("name", ["fleet.json", "boot.json", "lab.json", "driver-emmc.json"])
def test_a_run_of_the_virtual_evm_shows(bucket, dashboards, name):
    """With the run's own figures in the panels; nobody has published any of such a board."""
    begin, end = RECORDED_AT - DAY, RECORDED_AT + DAY
    values = choose(dashboards[name], bucket, {"board": ["virtual-evm"]}, begin, end)
    rows = {
        panel["title"]: flux(bucket, interpolated(panel["targets"][0]["query"], bucket, values, begin, end))
        for panel in panels(dashboards[name])
    }
    without = {title for title, found in rows.items() if not with_values(found)}
    # Nothing failed in this run, and the board has no goals.
    assert without <= {
        "Failed boots",
        "Cases not measured, or only after a retry",
        "Figures that changed",
        "Goals",
    }


def test_a_panel_shows_mean_band_and_published_figure(bucket, dashboards):
    dashboard = dashboards["driver-emmc.json"]
    (panel,) = [p for p in panels(dashboard) if p["title"].startswith("EMMC EXT4: Write")][:1]
    begin, end = START - DAY, START + 3 * DAY
    values = choose(dashboard, bucket, GIVEN, begin, end)
    measured, published = (
        flux(bucket, interpolated(target["query"], bucket, values, begin, end)) for target in panel["targets"]
    )
    assert len(measured) >= 2  # a point a release
    assert {"102400 mean", "102400 low", "102400 high"} <= set(measured[0])
    assert len(published) == 2
    assert published[0]["102400 published"] == published[1]["102400 published"]


def test_the_fleet_counts_worse_boards(bucket, dashboards):
    by_title = {panel["title"]: panel for panel in panels(dashboards["fleet.json"])}
    query = by_title["Boards with worse figures"]["targets"][0]["query"]
    values = {"kind": ["nightly"]}
    (row,) = flux(bucket, interpolated(query, bucket, values, START - DAY, START + 3 * DAY))
    assert row["boards"] == "1"
    steps = by_title["Boards with worse figures"]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert [(step.get("value"), step["color"]) for step in steps] == [(None, "green"), (1, "red")]


def test_a_point_leads_to_its_report_and_its_job(bucket, dashboards):
    """The second run's does; the first one has no addresses."""
    dashboard = dashboards["driver-emmc.json"]
    panel = next(p for p in panels(dashboard) if p["title"].startswith("EMMC EXT4: Write"))
    begin, end = START - DAY, START + 3 * DAY
    values = choose(dashboard, bucket, GIVEN, begin, end)
    rows = flux(bucket, interpolated(panel["targets"][0]["query"], bucket, values, begin, end))
    of_run = {row["run"]: row for row in rows}
    assert of_run["made-up-11.00"]["report"] == ""
    last = of_run["made-up-11.01"]
    assert last["report"] == "https://lab/results/made-up-11.01/report.html"
    assert (last["job"], last["pipeline"]) == (ADDRESSES["job"], ADDRESSES["pipeline"])
    overrides = {o["matcher"]["options"]: o["properties"] for o in panel["fieldConfig"]["overrides"]}
    (links,) = [p["value"] for p in overrides["/ mean$/"] if p["id"] == "links"]
    assert {"${__data.fields.report}", "${__data.fields.job}"} <= {link["url"] for link in links}
    (hidden,) = [name for name in overrides if name.startswith("/^(run|")]
    assert all(re.fullmatch(hidden.strip("/"), name) for name in ("run", "report", "job"))


def test_runs_are_chosen_by_what_they_were_for(bucket, dashboards):
    dashboard = dashboards["fleet.json"]
    by_title = {panel["title"]: panel for panel in panels(dashboard)}
    query = by_title["Last run of every board"]["targets"][0]["query"]
    # From the recorded run, which was made at a desk, to the nights that are made up.
    begin, end = min(RECORDED_AT, START) - DAY, max(RECORDED_AT, START) + 3 * DAY
    boards = {
        kind: {row["board"] for row in flux(bucket, interpolated(query, bucket, given, begin, end))}
        for kind in ("nightly", "desk")
        for given in [{"kind": [kind]}]
    }
    assert boards == {"nightly": {BOARD}, "desk": {"virtual-evm"}}


def test_nights_and_places_are_states_over_time(bucket, dashboards):
    by_title = {panel["title"]: panel for panel in panels(dashboards["fleet.json"])}
    values = {"kind": ["nightly"]}
    begin, end = START - DAY, START + 3 * DAY
    nights, places = (
        flux(bucket, interpolated(by_title[name]["targets"][0]["query"], bucket, values, begin, end))
        for name in ("Nights", "Places")
    )
    assert [row[BOARD] for row in nights] == ["not judged", "worse"]
    shown = by_title["Nights"]["fieldConfig"]["defaults"]["mappings"][0]["options"]
    assert {"worse", "not judged"} <= set(shown)
    assert [row["desk-1"] for row in places] == [BOARD, "", BOARD, ""]


def test_every_panel_says_what_it_shows_and_asks_the_chosen_database(dashboards):
    for name, dashboard in dashboards.items():
        first = dashboard["templating"]["list"][0]
        assert (first["type"], first["name"], first["query"]) == ("datasource", "datasource", "influxdb")
        for panel in panels(dashboard):
            assert len(panel.get("description", "")) > 20, f"{name}: {panel['title']}"
            assert {t["datasource"]["uid"] for t in panel["targets"]} == {"${datasource}"}
            if panel["type"] == "table":
                (organised,) = [t["options"] for t in panel["transformations"]]
                headings = organised["renameByName"]
                assert set(headings) == set(organised["indexByName"])
                assert all(heading[0].isupper() for heading in headings.values())


def test_releases_are_marked(bucket, dashboards):
    release, _ = dashboards["boot.json"]["annotations"]["list"]
    query = interpolated(release["target"]["query"], bucket, {"board": [BOARD]}, START - DAY, START + 3 * DAY)
    assert [row["text"] for row in flux(bucket, query)] == ["11.00", "11.01"]


def test_every_driver_and_metric_of_the_catalogue_has_its_panel(dashboards):
    for benchmark in catalogue.benchmarks().values():
        titles = {panel["title"] for panel in panels(dashboards[f"driver-{benchmark.driver}.json"])}
        for profile in benchmark.profiles:
            for case in benchmark.cases(profile):
                for metric in benchmark.metrics_of(case):
                    assert f"{benchmark.title}: {metric.title}" in titles


def test_phases_words_and_units_of_the_dashboards_are_those_of_evmperf(dashboards):
    by_title = {panel["title"]: panel for panel in panels(dashboards["boot.json"])}
    asked = [target["query"] for target in by_title["Mean of each phase"]["targets"]]
    for query, (metric, _, _, title, _) in zip(asked, SPANS[1:], strict=True):
        assert f'r.metric == "{metric}"' in query
        assert f'"{title}": r.mean' in query
    by_title = {panel["title"]: panel for panel in panels(dashboards["fleet.json"])}
    shown = by_title["Nights"]["fieldConfig"]["defaults"]["mappings"][0]["options"]
    assert set(shown) == {*Outcome, *Status, GoalWord.MISSED, GoalWord.MET}
    assert set(yamlfile.own("publish/grafana/dashboards.yaml")["units"]) <= set(Unit)


def test_the_generated_files_of_the_repository_are_current():
    made = files()
    stale = [name for name, text in made.items() if (FOLDER / name).read_text() != text]
    extra = {path.name for path in (FOLDER / DASHBOARDS).glob("*.json")} - set(MADE)
    assert (stale, extra) == ([], set()), "make dashboards"


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
def test_a_mistake_in_a_compose_file_is_found():
    data = yaml.safe_load((FOLDER / "docker-compose.yml").read_text())
    data["services"]["grafana"]["healthcheck"]["intervall"] = "1s"
    assert "intervall" in compose_faults(data)


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
    panels(broken)[-1]["fieldConfig"]["defaults"]["custom"]["drawStyle"] = "scribble"
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken))
    done = programs.run("node", str(NPM / "types.mjs"), str(path))
    assert done.returncode == 1
    for fault in ("null", "misspelt", "scribble"):
        assert fault in done.stdout
