"""The catalogue: complete and consistent; test_published.py compares it with TI's guides."""

import contextlib
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Place
from evmperf.benchmarks.step import Measure, MeasurePower, Plan, Search, Trial, next_trial
from evmperf.boards import board as boards
from evmperf.boards.reference import known, sections
from evmperf.boards.vocabulary import FEATURES
from evmperf.cli.main import main
from evmperf.measure import boardfile
from evmperf.model.errors import RefusedOutput, UsageError
from evmperf.model.places import is_plain
from evmperf.published.declared import tables
from evmperf.tools import meter
from selftests.support.boardfiles import fake_board

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = catalogue.benchmarks()
BOARDS = {name: boards.load(boards.ENV_DIR / name, tester="tester") for name in boards.names()}

ONLY_THE_LAB_KNOWS = {
    "lpm_power_rtc_ddr": "power.rtc_ddr_command",
    "eth_cpsw_hsr_forwarding": "cpsw.second_interface",
    "eth_icssg_hsr_forwarding": "icssg.interface",
    "nand_ubifs": "nand.scratch",
    "spi_ubifs": "spi.scratch",
}
"""Benchmarks that no board file enables as it comes, and the option that is left to the lab."""
each = pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=BENCHMARKS)


def supported():
    """Every benchmark, case and profile on every board that can run it."""
    return [
        pytest.param(benchmark, profile, board, id=f"{benchmark.name}-{profile}-{name}")
        for benchmark in BENCHMARKS.values()
        for profile in benchmark.profiles
        for name, board in BOARDS.items()
        if not benchmark.unsupported(board)
    ]


def rows(benchmark, profile, board):
    """The cases that the board has."""
    return [case for case in benchmark.cases(profile) if not benchmark.unsupported(board, case)]


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
def test_a_benchmark_uses_words_of_the_vocabulary(benchmark):
    assert benchmark.driver in FEATURES
    for section, key in benchmark.options:
        assert key in known(sections()[section])


@each
def test_the_name_of_a_case_may_be_that_of_its_folder(benchmark):
    labels = {case.label for name in benchmark.profiles for case in benchmark.cases(name)}
    assert [label for label in labels if not all(map(is_plain, label.split("/")))] == []


@each
def test_a_benchmark_has_both_profiles_with_the_same_rows(benchmark):
    assert set(benchmark.profiles) == {"full", "quick"}
    for profile in benchmark.profiles.values():
        labels = [case.label for case in profile.cases]
        assert labels
        assert len(set(labels)) == len(labels)
        assert profile.repeats >= 1


@each
def test_a_benchmark_has_distinct_metrics_with_a_range(benchmark):
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
    elif benchmark.driver == "eth":  # of boards without a file: the desk writes theirs
        assert all("does not list the feature eth" in reason for reason in reasons)
    else:
        assert "" in reasons


@each
def test_every_driver_has_a_module_of_tests(benchmark):
    text = (ROOT / "tests" / f"test_{benchmark.driver}.py").read_text()
    assert f'lg_feature("{benchmark.driver}")' in text


@pytest.mark.parametrize(("benchmark", "profile", "board"), supported())
def test_steps_are_whole_and_their_shell_text_is_right(benchmark, profile, board):
    for case in rows(benchmark, profile, board):
        wanted = {metric.name for metric in benchmark.metrics_of(case) if metric.required}
        steps = benchmark.declared_steps(board, case, profile)
        if benchmark.place is Place.BOOT:
            assert not steps
            continue
        names = [step.name for step in steps]
        assert len(set(names)) == len(names)
        assert any(isinstance(step, Measure | Search) for step in steps)
        assert wanted
        for step in steps:
            assert 0 <= step.expect_s < step.timeout_s
        for command in commands(steps):
            assert 0 <= command.expect_s < command.timeout_s
            for text in shell_texts(command):
                assert "None" not in text, "an option is missing"
                if benchmark.place is not Place.UBOOT:
                    sh_n(text)


def commands(steps):
    """What has a command: a step, or for a search its first trial."""
    return [next_trial(s.begin())[0] if isinstance(s, Search) else s for s in steps]


def shell_texts(step):
    measures_power = isinstance(step, MeasurePower)
    return [step.command, step.window.check] if measures_power else [step.command]


@pytest.mark.parametrize(("benchmark", "profile", "board"), supported())
def test_steps_are_the_same_for_the_same_board_row_and_plan(benchmark, profile, board):
    plan = Plan(benchmark.profiles[profile].repeats, 23456, bytes(range(64)))
    for case in rows(benchmark, profile, board):
        first, second = (list(benchmark.steps(board, case, plan)) for _ in range(2))
        assert first == second
        assert commands(first) == commands(second)
        assert parsers(first) == parsers(second)


def parsers(steps):
    return [bound(s.parse) for s in commands(steps) if isinstance(s, Measure | Trial)]


def bound(value):
    """What a parser was made of: functions of two calls are never equal themselves."""
    if isinstance(value, functools.partial):
        return bound(value.func), value.args
    if not hasattr(value, "__code__"):
        return value
    cells = [bound(cell.cell_contents) for cell in value.__closure__ or ()]
    return value.__code__, value.__defaults__, cells


def digest():
    """One number of all commands of all boards."""
    texts = [
        text
        for (benchmark, profile, board) in (found.values for found in supported())
        for case in rows(benchmark, profile, board)
        for step in commands(benchmark.declared_steps(board, case, profile))
        for text in (step.name, *shell_texts(step))
    ]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def test_steps_are_the_same_in_another_process():
    # Checksums of steps are compared between the host that made a LAVA job and the one that reads
    # its log: no step may depend on the order of a set.
    code = f"from {__name__} import digest; print(digest())"
    other = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == digest()


def test_each_measurement_has_its_own_ports_and_keys():
    board = BOARDS["am64x.yaml"]
    plans = [Plan(1, 20001, bytes(64)), Plan(1, 20002, bytes(range(64)))]
    for name in ("eth_cpsw_tcp_bidir", "eth_cpsw_udp_egress_0loss", "ipsec_sw"):
        benchmark = BENCHMARKS[name]
        (case, *_) = benchmark.cases("quick")
        one, other = (commands(benchmark.steps(board, case, plan)) for plan in plans)
        assert [a.name for a, b in zip(one, other, strict=True) if a == b], "nothing to share"
        assert {a.name for a, b in zip(one, other, strict=True) if a != b} >= {
            next(s.name for s in one if isinstance(s, Measure | Trial))
        }


def sh_n(command, cache={}):  # noqa: B006  # commands repeat from board to board
    if command not in cache:
        cache[command] = subprocess.run(
            ["sh", "-n", "-c", command], capture_output=True, text=True, check=False
        )
    assert cache[command].returncode == 0, f"{cache[command].stderr} in {command}"


@pytest.mark.parametrize(("benchmark", "profile", "board"), supported())
def test_steps_write_the_outputs_that_their_parsers_ask_for(benchmark, profile, board):
    for case in rows(benchmark, profile, board):
        for step in commands(benchmark.declared_steps(board, case, profile)):
            if not isinstance(step, Measure | Trial) or benchmark.place is Place.UBOOT:
                continue
            names = asked_for(step.parse)
            assert names
            for name in names - ({meter.JSON_FILE} if isinstance(step, MeasurePower) else set()):
                assert f'"$OUT/{name}"' in "\n".join(shell_texts(step))


def asked_for(parse):
    """The names of the outputs that a parser asks for."""
    outputs = Asked(RECORDED)
    # The recorded texts are of another job, but by then all names were asked for.
    with contextlib.suppress(RefusedOutput):
        parse(outputs)
    return outputs.names


class Asked(dict):
    """Outputs that note what is asked for."""

    def __init__(self, outputs):
        super().__init__(outputs)
        self.names = set()

    def __contains__(self, name):
        self.names.add(name)
        return super().__contains__(name)

    def __getitem__(self, name):
        self.names.add(name)
        return super().__getitem__(name)


RECORDED = {
    name: (ROOT / "selftests" / "data" / path).read_text()
    for name, path in {
        "fio.json": "fio/write-4k-directory.txt",
        "mpstat.json": "mpstat/one-interval.txt",
        "dd.txt": "dd/whole-records.txt",
        "stat.before": "mpstat/stat-before.txt",
        "stat.after": "mpstat/stat-after.txt",
        "lmbench.txt": "lmbench/pipe-latency.txt",
        "cyclictest.json": "cyclictest/histogram.txt",
        "dhrystone.txt": "dhrystone/long.txt",
        "cpufreq.txt": "dhrystone/cpufreq-1400mhz.txt",
        "whetstone.txt": "whetstone/two-seconds.txt",
        "linpack.txt": "linpack/single.txt",
        "nbench.txt": "nbench/whole.txt",
        "stream.txt": "stream/ten-million.txt",
        "coremark-pro.txt": "coremark_pro/two-contexts.txt",
        "mith.txt": "mith/check.txt",
        "openssl.txt": "openssl/aes-128-cbc.txt",
        "times.txt": "openssl/times.txt",
        "uptime.txt": "openssl/uptime.txt",
        "alsa.txt": "alsa/capture-8000.said.txt",
        "pcm.txt": "alsa/capture-8000.txt",
        "glmark2.txt": "glmark2/llvmpipe.txt",
        "pm_phases.txt": "pm_phases/s2idle.txt",
        "suspend.txt": "suspend/freeze.txt",
        "meter.json": "meter/scpi.txt",
        "tcp_stream.txt": "netperf/stream.txt",
        "tcp_maerts.txt": "netperf/maerts.txt",
        "udp.txt": "netperf/udp-flood.txt",
        "netperf.txt": "netperf/stream.txt",
        "iperf3.json": "iperf3/bidir-8k.txt",
        "yavta.txt": "yavta/vivid-nv12.txt",
        "xfrm.before": "xfrm/tunnel.txt",
        "xfrm.after": "xfrm/tunnel.txt",
        "rpmsg.txt": "rpmsg/form-1.txt",
        "histogram.txt": "rpmsg/form-1.histogram.txt",
        "frames.txt": "forwarding/bridge.txt",
    }.items()
}


def test_a_missing_feature_or_option_is_named(tmp_path):
    benchmark = BENCHMARKS["emmc_ext4"]
    bare = fake_board(tmp_path / "bare.yaml")
    assert benchmark.unsupported(bare) == "bare.yaml does not list the feature emmc"
    half = fake_board(tmp_path / "half.yaml", "emmc", emmc={})
    assert benchmark.unsupported(half) == "half.yaml does not set targets.main.options.emmc.scratch"


NOWHERE = {name for name in BENCHMARKS if name.startswith("coremarkpro")} | {
    "multibench",
    "nand_ubifs",
    "spi_ubifs",
    "rpmsg_echo",
    "eth_cpsw_hsr_forwarding",
    "eth_icssg_hsr_forwarding",
}
"""EEMBC's, which are not free, hardware of which there is no model, and HSR, which passed no frame."""


PLAIN = {name for name, benchmark in BENCHMARKS.items() if benchmark.driver == "eth"}
"""What cpsw and icssg measure, on ports of boards of which no more is known."""


def test_all_but_those_are_measured_on_some_virtual_evm():
    virtual = [board for board in BOARDS.values() if board.is_virtual]
    there = {
        name
        for name, benchmark in BENCHMARKS.items()
        if any(
            not benchmark.unsupported(board, case) for board in virtual for case in benchmark.cases("quick")
        )
    }
    assert set(BENCHMARKS) - there - PLAIN == NOWHERE


def test_what_the_virtual_evm_skips_names_the_one_that_can():
    board = BOARDS["virtual.yaml"]
    for name, benchmark in BENCHMARKS.items():
        reason = benchmark.unsupported(board)
        if name in PLAIN:
            assert reason == "virtual.yaml does not list the feature eth"
        elif name in NOWHERE:
            assert "no virtual EVM has" in reason
        elif reason:
            (other,) = re.findall(r"[\w-]+\.yaml", reason)
            assert benchmark.unsupported(BOARDS[other]) == ""


def test_the_list_ends_with_what_is_not_measured_and_why(capsys):
    assert main(["list"]) == 0
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
    assert (
        summary.unsupported(board, nand) == "the flash of virtual-ospi.yaml is OSPI NOR: "
        "this row is for QSPI NAND"
    )
    assert [uboot.unsupported(board, case) for case in uboot.cases("full")[:2]] == [
        "",
        "virtual-ospi.yaml lets U-Boot overwrite 0x400000 bytes and this row needs 0x800000: "
        "targets.main.options.ospi.uboot_size",
    ]


def test_a_boards_list_has_its_rows_only(capsys):
    assert main(["list", "--board", "virtual-ospi.yaml", "--json"]) == 0
    entries = {entry["id"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["linux_flash_summary"]["cases"] == ["OSPI NOR|1 MB"]
    assert entries["uboot_ospi"]["runnable"]
    assert entries["emmc_ext4"]["reason"] == "virtual-ospi.yaml does not list the feature emmc"
    assert len(entries["emmc_ext4"]["cases"]) == 5


def test_a_missing_tester_is_named_and_no_hindrance_to_others(tmp_path, monkeypatch):
    benchmark = BENCHMARKS["eth_cpsw_tcp_bidir"]
    virtual = boards.load(boards.ENV_DIR / "virtual.yaml")
    assert benchmark.unsupported(virtual) == ""
    cables = {section: virtual.said[section] for section in ("cpsw", "emmc")}
    file = tmp_path / "x.yaml"
    alone = fake_board(file, "cpsw", "emmc", **cables)
    assert benchmark.unsupported(alone) == (
        "x.yaml does not set targets.main.options.tester.host, and $EVMPERF_TESTER is not set"
    )
    assert BENCHMARKS["emmc_ext4"].unsupported(alone) == ""
    here = fake_board(file, "cpsw", "emmc", **cables, tester={"host": "lab-pc"})
    assert benchmark.unsupported(here) == ""
    assert here.tester == "lab-pc"
    monkeypatch.setenv("EVMPERF_TESTER", "other-pc")
    board = boardfile.named("am64x")
    assert board.tester == "other-pc"
    assert benchmark.unsupported(board) == ""


def test_an_unknown_benchmark_gets_a_suggestion():
    with pytest.raises(UsageError, match="no benchmark 'emmc_ext5'; did you mean emmc_ext"):
        catalogue.benchmark("emmc_ext5")
    with pytest.raises(UsageError, match="evmperf list"):
        catalogue.benchmark("zzz")
