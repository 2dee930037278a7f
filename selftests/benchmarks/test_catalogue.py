"""The catalogue: complete and consistent; test_published.py compares it with TI's guides."""

import json
import re
from pathlib import Path

import pytest
import yaml

from evmperf.benchmarks import catalogue, wording
from evmperf.boards import board as boards
from evmperf.boards.vocabulary import FEATURES, known_options, sections
from evmperf.commands.cli.main import main
from evmperf.judge.published.declared import tables
from evmperf.measure import boardfile
from evmperf.model.errors import RefusedOutput, UsageError
from evmperf.model.figures import Key
from evmperf.model.places import is_plain
from selftests.support.boardfiles import fake_board

ROOT = Path(__file__).resolve().parents[2]
KNOWN = yaml.safe_load(Path(__file__).with_name("known.yaml").read_text())
BENCHMARKS = catalogue.benchmarks()
BOARDS = {name: boards.load(boards.ENV_DIR / name, tester="tester") for name in boards.names()}

ONLY_THE_LAB_KNOWS = {
    "lpm_power_rtc_ddr": "power.rtc_ddr_command",
    "eth_icssg_hsr_forwarding": "icssg.interface",
    "nand_ubifs": "nand.scratch",
    "spi_ubifs": "spi.scratch",
}
"""Benchmarks that no board file enables as it comes, and the option that is left to the lab."""
each = pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=BENCHMARKS)


def test_every_module_has_benchmarks():
    folder = ROOT / "evmperf" / "benchmarks" / "tables"
    assert [
        file.name
        for file in folder.glob("[!_]*.py")
        if not {"BENCHMARK", "BENCHMARKS"} & set(re.findall(r"^\w+", file.read_text(), re.M))
    ] == []


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("\nBENCHMARK = Benchmark(", 2, "SyntaxError"),
        ("import os\n\nBENCHMARK = os.nothing\n", 3, "nothing"),
        ("\n\n\ndef steps():\n    return 1 / 0\n\n\nBENCHMARK = steps()\n", 5, "division"),
    ],
)
def test_an_error_in_a_lab_s_own_module_is_file_and_line(tmp_path, monkeypatch, text, line, said):
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "ours.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=rf"benchmarks/ours\.py:{line}: .*{said}"):
        catalogue.benchmarks.__wrapped__()


@each
def test_a_benchmark_is_whole(benchmark):
    assert benchmark.driver in FEATURES
    assert f'lg_feature("{benchmark.driver}")' in (ROOT / f"tests/test_{benchmark.driver}.py").read_text()
    for section, key in benchmark.options:
        assert key in known_options(sections()[section])
    assert set(benchmark.profiles) == {"full", "quick"}
    for profile in benchmark.profiles.values():
        labels = [case.label for case in profile.cases]
        assert labels
        assert len(set(labels)) == len(labels)
        assert all(map(is_plain, "/".join(labels).split("/"))), "each may be the name of a folder"
        assert profile.repeats >= 1
    names = [metric.name for metric in benchmark.metrics]
    assert len(set(names)) == len(names)
    for metric in benchmark.metrics:
        assert metric.low < metric.high
        assert benchmark.metric(metric.name) is metric
    with pytest.raises(RefusedOutput, match="no metric 'no_such_metric'"):
        benchmark.metric("no_such_metric")


@each
def test_every_benchmark_can_run_on_some_board(benchmark):
    reasons = [benchmark.unsupported(board) for board in BOARDS.values()]
    if option := ONLY_THE_LAB_KNOWS.get(benchmark.name):
        assert any(reason.endswith(f"does not set targets.main.options.{option}") for reason in reasons)
    elif benchmark.driver in ("eth", "desk"):  # of boards without a file: the desk writes theirs
        assert all(f"does not list the feature {benchmark.driver}" in reason for reason in reasons)
    else:
        assert "" in reasons


def test_a_missing_feature_or_option_is_named(tmp_path):
    benchmark = BENCHMARKS["emmc_ext4"]
    bare = fake_board(tmp_path / "bare.yaml")
    assert benchmark.unsupported(bare) == "bare.yaml does not list the feature emmc"
    half = fake_board(tmp_path / "half.yaml", "emmc", emmc={})
    assert benchmark.unsupported(half) == "half.yaml does not set targets.main.options.emmc.scratch"


@pytest.mark.parametrize("word", ["emmc", "emmc_ext4"])
def test_what_a_board_cannot_have_is_said_with_its_own_reason(tmp_path, word):
    board = fake_board(tmp_path / "b.yaml", "emmc", absent={word: "this board has no eMMC fitted"})
    assert BENCHMARKS["emmc_ext4"].unsupported(board) == "this board has no eMMC fitted"
    other = BENCHMARKS["emmc_ext2"].unsupported(board)
    assert (other == "this board has no eMMC fitted") == (word == "emmc")


NOWHERE = {name for name in BENCHMARKS if name.startswith("coremarkpro")} | {
    "multibench",
    "nand_ubifs",
    "spi_ubifs",
    "rpmsg_echo",
    "eth_icssg_hsr_forwarding",
}
"""EEMBC's, which are not free, hardware of which there is no model, and HSR of ports that have none here."""


PLAIN = {name for name, benchmark in BENCHMARKS.items() if benchmark.driver in ("eth", "desk")}
"""Of boards of which no more is known: what cpsw and icssg measure elsewhere, and what a desk finds."""


def test_all_but_those_are_measured_on_some_virtual_evm_and_virtual_names_the_one_that_can():
    board = BOARDS["virtual.yaml"]
    virtual = [one for one in BOARDS.values() if one.is_virtual]
    for name, benchmark in BENCHMARKS.items():
        reason = benchmark.unsupported(board)
        if name in PLAIN:
            assert reason.endswith((" eth", " desk"))
        elif name in NOWHERE:
            assert "no virtual EVM has" in reason
            assert all(benchmark.unsupported(one) for one in virtual)
        elif reason:
            (other,) = re.findall(r"[\w-]+\.yaml", reason)
            assert BOARDS[other] in virtual
            assert any(not benchmark.unsupported(BOARDS[other], case) for case in benchmark.cases("quick"))


def test_the_list_ends_with_what_is_not_measured_and_why(capsys):
    assert main(["benchmark", "list"]) == 0
    measured, _, others = capsys.readouterr().out.partition("\n\nRead from published guides")
    assert len(measured.splitlines()) == len(BENCHMARKS)
    lines = [line.split(maxsplit=2) for line in others.splitlines()[1:]]
    unmeasured = {name: t for name, t in tables().items() if not t.module}
    assert {name for name, *_ in lines} == set(unmeasured)
    assert all(len(reason) > 20 for _, _, reason in lines)
    assert not any(table.not_measured for table in tables().values() if table.module)


def test_a_row_that_the_board_lacks_has_a_reason():
    board = BOARDS["virtual-ospi.yaml"]
    summary, uboot = BENCHMARKS["linux_flash_summary"], BENCHMARKS["uboot_ospi"]
    nor, nand = summary.cases("full")
    assert summary.unsupported(board) == summary.unsupported(board, nor) == ""
    assert re.search("virtual-ospi.yaml .*OSPI NOR: .*QSPI NAND", summary.unsupported(board, nand))
    small, large = (uboot.unsupported(board, case) for case in uboot.cases("full")[:2])
    assert small == ""
    assert re.search("0x400000 .*0x800000: .*options.ospi.uboot_size", large)


def test_a_boards_list_has_its_rows_only(capsys):
    assert main(["benchmark", "list", "--board", "virtual-ospi.yaml", "--json"]) == 0
    entries = {entry["id"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["linux_flash_summary"]["cases"] == ["OSPI NOR|1 MB"]
    assert entries["uboot_ospi"]["runnable"]
    assert entries["emmc_ext4"]["reason"] == BENCHMARKS["emmc_ext4"].unsupported(BOARDS["virtual-ospi.yaml"])
    assert len(entries["emmc_ext4"]["cases"]) == 5


def test_a_missing_tester_is_named_and_no_hindrance_to_others(tmp_path, monkeypatch):
    benchmark = BENCHMARKS["eth_cpsw_tcp_bidir"]
    virtual = boards.load(boards.ENV_DIR / "virtual.yaml")
    assert benchmark.unsupported(virtual) == ""
    cables = {section: virtual.sections[section] for section in ("cpsw", "emmc")}
    file = tmp_path / "x.yaml"
    alone = fake_board(file, "cpsw", "emmc", **cables)
    assert re.search(r"options\.tester\.host, .*\$EVMPERF_TESTER", benchmark.unsupported(alone))
    assert BENCHMARKS["emmc_ext4"].unsupported(alone) == ""
    here = fake_board(file, "cpsw", "emmc", **cables, tester={"host": "lab-pc"})
    assert benchmark.unsupported(here) == ""
    assert here.tester == "lab-pc"
    monkeypatch.setenv("EVMPERF_TESTER", "other-pc")
    board = boardfile.named("am64x")
    assert board.tester == "other-pc"
    assert benchmark.unsupported(board) == ""


def test_an_unknown_benchmark_gets_a_suggestion():
    with pytest.raises(UsageError, match="unknown benchmark 'emmc_ext5'; did you mean emmc_ext"):
        catalogue.benchmark("emmc_ext5")
    with pytest.raises(UsageError, match="evmperf benchmark list"):
        catalogue.benchmark("zzz")


# Names of figures as people read them


@pytest.mark.parametrize("said", KNOWN["figures"])
def test_a_figure_is_named_in_words(said):
    assert wording.figure(Key(*KNOWN["figures"][said])) == said


def test_no_two_figures_of_the_catalogue_share_a_name():
    names = [
        wording.figure(Key(name, case.label, metric.name))
        for name, benchmark in BENCHMARKS.items()
        for case in benchmark.cases("full")
        for metric in benchmark.metrics_of(case)
    ]
    assert len(names) == len(set(names))
