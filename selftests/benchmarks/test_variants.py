"""Variants: each is documented, and published figures of other tools are not compared."""

import fnmatch
import json
import re
from pathlib import Path

import pytest

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.model import comparable
from evmperf.model.results import VARIANT
from evmperf.model.run import Run
from selftests.support import seeds

ROOT = Path(__file__).resolve().parents[2]
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
