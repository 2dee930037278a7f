"""The steps of all benchmarks on all boards: whole, repeatable, and with the outputs that parsers ask for."""

import functools
import hashlib
import re
import sys
from pathlib import Path

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Place
from evmperf.benchmarks.step import Measure, MeasurePower, Plan, SearchStep, Trial, next_trial
from evmperf.boards import board as boards
from evmperf.model.errors import RefusedOutput
from selftests.benchmarks.test_catalogue import NOWHERE
from selftests.support import programs
from selftests.support.recordings import DATA

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = catalogue.benchmarks()
BOARDS = {name: boards.load(boards.ENV_DIR / name, tester="tester") for name in boards.names()}


each = pytest.mark.parametrize(
    ("benchmark", "profile"),
    [
        pytest.param(benchmark, profile, id=f"{benchmark.name}-{profile}")
        for benchmark in BENCHMARKS.values()
        for profile in benchmark.profiles
    ],
)


def rows(benchmark, profile):
    """Every case on every board that can run it; where a test fails, the last board is printed."""
    for name, board in BOARDS.items():
        if not benchmark.unsupported(board):
            print(name)
            yield from ((board, case) for case in cases(benchmark.name, profile, name))


@functools.cache
def cases(name, profile, board):
    """The cases that a board has."""
    benchmark = BENCHMARKS[name]
    return [case for case in benchmark.cases(profile) if not benchmark.unsupported(BOARDS[board], case)]


@each
def test_steps_are_whole_and_their_shell_text_is_right(benchmark, profile):
    for board, case in rows(benchmark, profile):
        wanted = {metric.name for metric in benchmark.metrics_of(case) if metric.required}
        steps = benchmark.declared_steps(board, case, profile)
        if benchmark.place is Place.BOOT:
            assert not steps
            continue
        names = [step.name for step in steps]
        assert len(set(names)) == len(names)
        assert any(isinstance(step, Measure | SearchStep) for step in steps)
        assert wanted
        for step in steps:
            assert 0 <= step.expect_s < step.timeout_s
        for command in commands(steps):
            assert 0 <= command.expect_s < command.timeout_s
            for text in shell_texts(command):
                assert "None" not in text, "an option is missing"
                if benchmark.place is not Place.UBOOT:
                    sh_n(text)
            if isinstance(command, Measure | Trial) and benchmark.name in NOWHERE:
                reads_what_it_writes(command)


def commands(steps):
    """What has a command: a step, or for a search its first trial."""
    return [next_trial(s.begin())[0] if isinstance(s, SearchStep) else s for s in steps]


def shell_texts(step):
    measures_power = isinstance(step, MeasurePower)
    return [step.command, step.window.check] if measures_power else [step.command]


def digest():
    """One number of all commands of all boards."""
    texts = [
        text
        for benchmark in BENCHMARKS.values()
        for profile in benchmark.profiles
        for board, case in rows(benchmark, profile)
        for step in commands(benchmark.declared_steps(board, case, profile))
        for text in (step.name, *shell_texts(step))
    ]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def test_steps_are_the_same_in_another_process():
    # Checksums of steps are compared between the host that made a LAVA job and the one that reads
    # its log: no step may depend on the order of a set.
    code = f"from {__name__} import digest; print(digest())"
    words = (sys.executable, "-c", code)
    other = programs.run(
        *words, cwd=Path(__file__).parent, PYTHONHASHSEED="4711", PYTHONPATH=str(ROOT), check=True
    )
    assert other.stdout.splitlines()[-1] == digest()


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
        cache[command] = programs.run("sh", "-n", "-c", command)
    assert cache[command].returncode == 0, f"{cache[command].stderr} in {command}"


def reads_what_it_writes(step):
    """Check that a step writes the outputs that its parser asks for."""
    names = re.findall(r'"\$OUT/([^"]+)"', step.command)
    assert names
    try:
        step.parse({name: RECORDED.get(name, "") for name in names})
    except RefusedOutput as error:
        # The recorded texts are of another job, but by then all names were asked for.
        assert "the step wrote no " not in str(error)  # noqa: PT017  # most are refused


RECORDED = {
    name: (DATA / path).read_text()
    for name, path in {
        "coremark-pro.txt": "coremark_pro/two-contexts.txt",
        "dd.txt": "dd/whole-records.txt",
        "frames.txt": "forwarding/bridge.txt",
        "histogram.txt": "rpmsg/form-1.histogram.txt",
        "mith.txt": "mith/check.txt",
        "rpmsg.txt": "rpmsg/form-1.txt",
        "stat.after": "mpstat/stat-after.txt",
        "stat.before": "mpstat/stat-before.txt",
    }.items()
}
"""What benchmarks leave that no virtual EVM measures; of the others a session would miss it."""
