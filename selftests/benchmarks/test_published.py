"""Benchmarks that stand for a table of TI's guides measure what it publishes, in its rows; and other ways."""

import fnmatch
import itertools
import json
import re
from pathlib import Path

import pytest
import yaml

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Place
from evmperf.benchmarks.step import Measure
from evmperf.boards import board as boards
from evmperf.judge.published.declared import tables
from evmperf.model import comparable
from evmperf.model.results import VARIANT
from evmperf.model.run import Run
from selftests.support import seeds

ROOT = Path(__file__).resolve().parents[2]
FACTS = yaml.safe_load((ROOT / "selftests/data/published/tables.yaml").read_text())
BENCHMARKS = {name: b for name, b in catalogue.benchmarks().items() if name in FACTS}
BOARDS = {name: boards.load(boards.ENV_DIR / name) for name in ("virtual.yaml", "am64x.yaml")}

each = pytest.mark.parametrize("name", BENCHMARKS)


def test_every_table_of_the_guides_has_its_benchmark():
    assert set(BENCHMARKS) == set(FACTS)


@each
def test_it_has_title_place_and_columns_of_its_table(name):
    assert BENCHMARKS[name].title == FACTS[name]["title"]
    assert list(BENCHMARKS[name].section) == FACTS[name]["section"]
    declared = {m.name: [str(m.unit), str(m.better)] for m in BENCHMARKS[name].metrics}
    required = [metric.name for metric in BENCHMARKS[name].metrics if metric.required]
    wanted = FACTS[name]["figures"]
    for metric, kind in wanted.items():
        if metric.endswith("N"):
            numbered = [f"{metric[:-1]}{number}" for number in range(len(declared))]
            assert declared == dict.fromkeys(numbered, kind)
            assert required == numbered[:1]
            return
        if kind != "by row":
            assert declared[metric] == kind
    if "by row" in wanted.values():
        assert set(required) == set(wanted)
    else:
        assert required == list(wanted)


@each
def test_it_has_the_rows_of_its_table(name):
    rows, benchmark = FACTS[name]["rows"], BENCHMARKS[name]
    labels = [case.label for case in benchmark.cases("full")]
    if benchmark.place is Place.BOOT:
        arguments = {c.label: c.params["kernel_arguments"] for c in benchmark.cases("full")}
        assert arguments == rows
        assert benchmark.profiles["full"].repeats == FACTS[name]["cycles"]
        return
    if isinstance(rows, list):
        wanted = ["|".join(row) for row in itertools.product(*rows)]
        assert [label for label in labels if label in wanted] == wanted  # other guides have more
        return
    assert labels == list(rows)
    for case in benchmark.cases("full"):
        for metric in benchmark.metrics_of(case):
            assert [str(metric.unit), str(metric.better)] == rows[case.label]


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if "command" in FACTS[name]])
@pytest.mark.parametrize("side", ["write", "read"])
def test_fio_is_called_as_published(name, side):
    benchmark, board = BENCHMARKS[name], BOARDS["virtual.yaml"]
    for case in benchmark.cases("full"):
        steps = {s.name: s.command for s in benchmark.declared_steps(board, case, "full")}
        published = FACTS[name]["command"].replace("SIDE", "$rw").replace("ROW", "$b")
        assert set(published.split()) <= set(steps[side].split())
        assert "for b in 4m 1m 256k 4k; do for rw in write read; do" in steps[side]
        assert f"--name={benchmark.driver}_TEST" in steps[side]
        assert "mpstat -P ALL -o JSON 55 1" in steps[side]


def test_lmbench_runs_the_published_programs_once_each():
    benchmark, board = BENCHMARKS["lmbench"], BOARDS["am64x.yaml"]
    facts = FACTS["lmbench"]
    shared = {}
    for case in benchmark.cases("full"):
        steps = benchmark.declared_steps(board, case, "full")
        (measure,) = (step for step in steps if isinstance(step, Measure))
        assert f'{facts["programs"][case.label]} >"$OUT/lmbench.txt"' in measure.command
        shared[case.label] = measure.shared
    for row, other in facts["second_names"].items():
        assert shared[row] == shared.get(other, facts["programs"][row])
    assert len(set(shared.values())) == len(set(facts["programs"].values()))
    assert dict(tables()["lmbench"].aliases) == facts["second_names"]


def test_cyclictest_runs_as_published():
    benchmark, board = BENCHMARKS["cyclictest_stress"], BOARDS["am64x.yaml"]
    for case in benchmark.cases("full"):
        measure, _ = benchmark.declared_steps(board, case, "full")
        for published in FACTS["cyclictest_stress"]["commands"]:
            assert published in measure.command


def test_uboot_moves_as_many_sectors_as_published():
    benchmark, board = BENCHMARKS["uboot_emmc_raw"], BOARDS["virtual.yaml"]
    sectors = [
        step.command.split()[-1]
        for case in benchmark.cases("full")
        for step in benchmark.declared_steps(board, case, "full")
        if isinstance(step, Measure)
    ]
    assert sectors == ["10000", "10000", "20000", "20000"]  # hexadecimal, 512 bytes each


# Variants: each is documented, and published figures of other tools are not compared

PAGE = (ROOT / "docs" / "variants.md").read_text()


def test_the_page_has_every_variant_that_a_board_can_have():
    every = [boards.load(boards.ENV_DIR / name) for name in boards.names()]
    said = {
        part
        for board in every
        for benchmark in catalogue.benchmarks().values()
        if not benchmark.unsupported(board)
        for part in str(benchmark.conditions(board).get(VARIANT, "")).split("; ")
        if part
    }
    assert len(said) > 5
    assert [part for part in said if f"`{part}`" not in PAGE] == []


METHODS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.split("## Table by table")[1].split("## ")[0].splitlines()
    if line.startswith("| `")
]


def test_every_table_has_its_method_and_tis_file():
    names = catalogue.benchmarks()
    patterns = [pattern for row in METHODS for pattern in re.findall(r"`([^`]+)`", row[0])]
    assert [name for name in names if not any(fnmatch.fnmatch(name, one) for one in patterns)] == []
    assert [one for one in patterns if not any(fnmatch.fnmatch(name, one) for name in names)] == []


@seeds.needs("real/ltp-ddt")
def test_the_lines_of_tis_files_are_there():
    folder = seeds.place("real/ltp-ddt")
    places = [place for row in METHODS for place in re.findall(r"`((?:scripts|runtest)/[^`]+)`", row[1])]
    assert len(places) > 12
    for place in places:
        name, _, lines = place.partition(":")
        name = name.replace("scripts/", "testcases/ddt/scripts/").replace("runtest/", "runtest/ddt/")
        file = next(f for f in (folder / "newer" / name, folder / name) if f.is_file())
        last = max(map(int, re.findall(r"\d+", lines)), default=0)
        assert last <= len(file.read_text(errors="replace").splitlines()), place


@pytest.mark.parametrize(
    ("name", "ours", "published"),
    [
        ("eth_cpsw_udp_egress_0loss", "iperf3", "netperf"),
        ("eth_icssg_udp_ingress_0loss", "iperf3", "netperf"),
        ("audio_capture", "arecord", "alsa_perf_tests"),
        ("emmc_ext4", "dd", "filesystem_tests"),
    ],
)
def test_published_figures_of_other_tools_are_not_compared(name, ours, published):
    tools = {
        tool
        for file in (ROOT / "baselines").glob("*/results.jsonl")
        for result in map(json.loads, file.read_text().splitlines())
        if result.get("benchmark") == name
        for tool in result.get("tools", {"": ""})
    }
    assert tools == {published}
    benchmark = catalogue.benchmark(name)
    assert ours in benchmark.tools
    ours_, theirs = (
        comparable.of_case(Run("x", "b", "full"), comparable.ComparableCase("d", "full", 0, tools, {}))
        for tools in ([ours], [published])
    )
    assert comparable.difference(ours_, theirs) == f"tool differs ({ours}, not {published})"
    beside = [f"tester {tool}" for tool in benchmark.ti.tester_tools]
    as_ti = comparable.ComparableCase("d", "full", 0, [*benchmark.ti.tools, *beside], {})
    assert comparable.difference(comparable.of_case(Run("x", "b", "full"), as_ti), theirs) == ""
