"""Benchmarks that stand for a table of TI's guides measure what it publishes, in its rows."""

import itertools
from pathlib import Path

import pytest
import yaml

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Place
from evmperf.benchmarks.step import Measure
from evmperf.boards import board as boards
from evmperf.judge.published.declared import tables

FACTS = yaml.safe_load((Path(__file__).resolve().parents[1] / "data/published/tables.yaml").read_text())
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
