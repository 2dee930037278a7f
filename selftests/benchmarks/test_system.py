"""The system benchmarks' shell text and the stand-ins, run here with real processes."""

import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.step import CleanUp, Measure, Plan
from evmperf.benchmarks.tables import cyclictest_stress as cyclictest
from evmperf.benchmarks.tables import openssl
from evmperf.benchmarks.tools import gauge
from evmperf.boards import board as boards
from evmperf.measure import shellstep
from evmperf.model.errors import RefusedOutput
from selftests.support.fakes import LocalShell
from selftests.support.placelab import until
from selftests.support.recordings import DATA
from selftests.support.steps import step_of

PROGRAMS = boards.ENV_DIR.parent / "virtual-evm" / "virtual" / "programs"
STANDINS = {
    "linpack": ("kflops", ["linpack"]),
    "whetstone": ("MWIPS", ["whetstone"]),
    "stream": ("MB/s", [case.label for case in catalogue.benchmark("stream").cases("full")]),
    "nbench": ("iterations/s", [case.label for case in catalogue.benchmark("nbench").cases("full")]),
}
HISTOGRAM = DATA / "cyclictest" / "histogram.txt"


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    """A function that puts a shell script on the PATH under a name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(name, script):
        file = folder / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    return put


@pytest.fixture
def shell(tmp_path):
    local = LocalShell(tmp_path / "board")
    local.hanging = True  # so that it lets commands kill what they started themselves
    shellstep.install(local)
    return local


def ended(pid):
    """Whether a process is gone, or soon will be."""
    stat = Path(f"/proc/{pid}/stat")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        until(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "Z", 10)
    return True


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
@pytest.mark.parametrize("name", STANDINS)
def test_a_stand_in_prints_what_its_parser_reads(name, tmp_path):
    program, (unit, figures) = tmp_path / f"evmperf-{name}", STANDINS[name]
    strict = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]
    source = PROGRAMS / f"{name}.c"
    subprocess.run(["gcc", *strict, "-o", program, source, "-lm"], check=True)
    run = subprocess.run([program, "0.5"], capture_output=True, text=True, check=True)
    for figure in figures:
        assert gauge.figure(run.stdout, program.name, figure, unit) > 0
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith(f"{program.name} 1 (gcc ")
    assert subprocess.run([program, "0"], capture_output=True, check=False).returncode == 2


def test_a_board_says_which_program_is_its_benchmark():
    for name in (*STANDINS, "dhrystone"):
        benchmark = catalogue.benchmark(name)
        *_, published = benchmark.tools_on(boards.load(boards.ENV_DIR / "am64x.yaml"))
        *_, own = benchmark.tools_on(boards.load(boards.ENV_DIR / "virtual.yaml"))
        assert own == f"evmperf-{name}"
        assert not published.startswith("evmperf-")


def stressed(on_path, shell, tmp_path, *, stress="exec sleep 1000", status=0):
    """Measure with scripts for programs; returns the step's output and stress-ng's process id."""
    on_path("stress-ng", f"echo $$ >{tmp_path}/pid\n{stress}")
    on_path(
        "cyclictest",
        f"until [ -s {tmp_path}/pid ]; do sleep 0.01; done\n"
        f"for a; do case $a in --json=*) cat {HISTOGRAM} >${{a#--json=}};; esac; done\n"
        f"exit {status}",
    )
    done = shellstep.run(shell, step_of("cyclictest_stress").command, 30)
    return done, int((tmp_path / "pid").read_text())


@pytest.mark.parametrize("status", [0, 7])
def test_stress_ends_with_the_measurement_and_when_it_fails(on_path, shell, tmp_path, status):
    done, pid = stressed(on_path, shell, tmp_path, status=status)
    assert done.status == status
    assert ended(pid)
    assert not (shell.folder / "stress-ng.pid").exists()
    assert cyclictest.latencies(done.files["cyclictest.json"], "min") == [18, 25]


def test_latencies_without_stress_are_a_failure(on_path, shell, tmp_path):
    done, _ = stressed(on_path, shell, tmp_path, stress="exit 0")
    assert done.status == 1
    assert "stress-ng ended before" in done.files["log"]


def test_stress_of_an_interrupted_measurement_is_ended(shell):
    stress = subprocess.Popen(["sleep", "1000"])
    (shell.folder / "stress-ng.pid").write_text(f"{stress.pid}\n")
    clean_up = step_of("cyclictest_stress", step="clean-up")
    assert isinstance(clean_up, CleanUp)
    for _ in range(2):  # the second time there is nothing left to end
        assert shellstep.run(shell, clean_up.command, 30).status == 0
    assert stress.wait(10) == -15


@pytest.mark.parametrize("listens", [True, False])
def test_lmbench_measures_with_its_server_alone(on_path, shell, listens):
    said = "TCP latency using localhost: 4.7000 microseconds"
    on_path("lat_tcp", f'case "$*" in *localhost) echo "{said}";; esac')
    on_path("sleep", "")
    step = step_of("lmbench", "lat_tcp")
    with socket.create_server(("127.0.0.1", 31234)) if listens else contextlib.nullcontext():
        done = shellstep.run(shell, step.command, 30)
    assert done.status == (not listens)
    if listens:
        assert [reading.value for reading in step.parse(done.files)] == [4.7]
    else:
        assert "the server of lat_tcp does not listen" in done.files["log"]


@pytest.mark.parametrize("silent", [0, 2, 9])
def test_lmbench_that_printed_nothing_is_asked_again(silent, on_path, shell, tmp_path):
    on_path(
        "lat_sig",
        f"echo >>{tmp_path}/calls\n"
        f"[ $(wc -l <{tmp_path}/calls) -le {silent} ] || "
        'echo "Protection fault: 1.5000 microseconds"',
    )
    step = step_of("lmbench", "lat_sig-prot")
    done = shellstep.run(shell, step.command.replace("/opt/evmperf-lmbench", str(tmp_path)), 30)
    assert done.status == 0
    assert len(done.files.get("attempts.txt", "").splitlines()) == min(silent, 6)
    if silent < 6:
        assert [reading.value for reading in step.parse(done.files)] == [1.5]
    else:
        with pytest.raises(RefusedOutput):
            step.parse(done.files)


@pytest.mark.parametrize("benchmark", ["coremarkpro", "multibench"])
def test_a_suite_that_is_not_there_is_named_with_the_remedy(benchmark, shell):
    done = shellstep.run(shell, step_of(benchmark).command, 30)
    assert done.status == 1
    assert "install it, or set options.system." in done.files["log"]


def test_multibench_finds_a_workload_whatever_its_capitals(shell, tmp_path):
    folder = tmp_path / "multibench" / "builds" / "linux64" / "gcc64" / "bin"
    folder.mkdir(parents=True)
    program = folder / "4M-check.exe"
    program.write_text(f"#!/bin/sh\ncat {DATA}/mith/check.txt\n")
    program.chmod(0o755)
    step = step_of("multibench", "4m-check")
    command = step.command.replace("/opt/multibench", str(tmp_path / "multibench"))
    done = shellstep.run(shell, command, 30)
    assert [reading.value for reading in step.parse(done.files)] == [19.0476]
    missing = step_of("multibench", "md5-4m").command
    done = shellstep.run(shell, missing.replace("/opt/multibench", str(tmp_path / "multibench")), 30)
    assert done.status == 1
    assert "no md5-4m.exe" in done.files["log"]


def test_the_histogram_is_found_once_for_all_rows(tmp_path):
    shutil.copy(HISTOGRAM, tmp_path / "run.cyclictest.json")
    (tmp_path / "cut.cyclictest.json").write_text(HISTOGRAM.read_text()[:100])
    rows = [
        SimpleNamespace(benchmark="cyclictest_stress", samples=(1,), raw=(f"{name}.cyclictest.json",))
        for name in ("run", "run", "cut", "gone")
    ]
    (cpus,) = cyclictest.wake_ups(rows, tmp_path)
    document = json.loads(HISTOGRAM.read_text())
    assert sum(cpus[1].values()) == sum(document["thread"]["1"]["histogram"].values())


@pytest.mark.parametrize(("says", "marked"), [("Features\t: fp asimd aes pmull\n", False), ("none\n", True)])
def test_a_processor_without_arms_instructions_has_no_column_for_them(says, marked):
    rows = catalogue.benchmark("crypto_comparison")
    case = next(case for case in rows.cases("full") if str(case.params["buffer_size"]) == "1024")
    case = replace(case, params=case.params | {"seconds": 1})
    arm, extended, _ = rows.steps(None, case, None)
    text = (DATA / "openssl/aes-128-cbc.txt").read_text()
    (reading,) = arm.parse({"openssl.txt": text, "openssl-about.txt": says * 2})
    assert bool(reading.mark) is marked
    assert extended.parse({}) == []
    # The column's command ends at once where the word is among an x86's flags.
    ended = subprocess.run(
        ["sh", "-c", f"{openssl.SHELL('arm_ce')}; echo ran"], capture_output=True, text=True, check=False
    )
    arm_here = re.search(r"^Features.*aes", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    assert bool(ended.stdout) is bool(arm_here)


def test_traffic_that_is_not_esp_is_refused():
    secret = struct.pack(">II", *(2 * (spi - 0x1000) for spi in (0x7262249D, 0x39C211B))) + bytes(56)
    table, board = catalogue.benchmark("ipsec_sw"), boards.load(boards.ENV_DIR / "virtual-ipsec.yaml")
    steps = table.steps(board, table.cases("quick")[0], Plan(secret=secret))
    (measure,) = (step for step in steps if isinstance(step, Measure))
    counters = (DATA / "xfrm/tunnel.txt").read_text()
    netperf = (DATA / "netperf/slow-link.txt").read_text()
    with pytest.raises(RefusedOutput, match="but ESP carried 0 there and 0 back"):
        measure.parse({"netperf.txt": netperf, "xfrm.before": counters, "xfrm.after": counters})
