"""What a full disk, a board that is gone and a tester leave behind."""

import contextlib

import pytest

from evmperf.benchmarks.step import CleanUp, Prepare, SearchStep, Trial, Where
from evmperf.lab.tester import CommandTester
from evmperf.measure.runs.spool import read_run
from evmperf.model.errors import BoardError, LabError
from evmperf.model.results import Status
from selftests.support import devices
from selftests.support.fakes import LocalShell
from selftests.support.runners import CASE, FINE, make, measuring, messages, on_spool, parse


@pytest.fixture
def tiny(tmp_path):
    """A folder on a file system of 64 KiB."""
    with devices.small(tmp_path / "tiny", "64k") as folder:
        yield folder


def measure_many(runner, benchmark):
    for _ in range(50):
        runner.measure(benchmark, CASE)


@pytest.mark.parametrize("error", [BoardError("dead"), LabError("no console")])
@pytest.mark.parametrize("way", ["measure", "search"])
def test_a_board_that_is_gone_leaves_a_clean_tester_behind(lab, tmp_path, error, way):
    marker = tmp_path / "server"

    def trials():
        yield Trial("try", "echo gone", 10, parse=parse)
        raise AssertionError("a board that is gone ends the search")

    measure = {"measure": measuring("echo gone"), "search": SearchStep("search", trials, 30, 3)}[way]
    steps = [
        Prepare("start", f"touch {marker}", 10, where=Where.TESTER),
        measure,
        CleanUp("restore", "echo never >&2", 10),
        CleanUp("stop", f"rm {marker}", 10, where=Where.TESTER),
    ]
    beside = CommandTester(["env"], "this machine")
    runner = lab(shell=LocalShell(tmp_path / "board", [error], when="echo gone"), tester=beside)
    with contextlib.suppress(LabError):
        runner.measure(make(*steps), CASE)
    (result,) = on_spool(runner)
    assert str(error) in messages(result)[0]
    assert not marker.exists()
    assert not any("never" in command for command in runner.bench.shell().asked)
    runner.close()


@pytest.mark.parametrize("filler", ["result", "raw"])
def test_a_full_disk_is_a_lab_error_with_the_remedy_and_costs_nothing_measured(lab, tiny, filler):
    runner = lab(results=tiny)
    first = runner.measure(FINE, CASE)
    ballast = tiny / "ballast"
    ballast.write_bytes(b"x" * (8 << 10))
    big = "head -c 200000 /dev/zero | tr '\\0' 7 >\"$OUT/big\"; " if filler == "raw" else ""
    if filler == "result":
        with pytest.raises(OSError, match="No space"):
            (tiny / "rest").write_bytes(b"x" * (1 << 20))
    step = measuring(big + 'echo 6 >"$OUT/x"')
    with pytest.raises(LabError, match=r"No space left.*--results"):
        measure_many(runner, make(step))
    assert on_spool(runner)[0] == first
    assert read_run(runner.spool.folder).id == "fake-1"
    whole = (runner.spool.folder / "results.jsonl").read_bytes()
    assert whole.endswith(b"\n")
    (tiny / "rest").unlink(missing_ok=True)
    ballast.unlink()
    before = len(on_spool(runner))
    runner.spool.append(first)
    assert on_spool(runner)[before:] == [first]


def test_long_facts_are_kept_at_the_end(lab):
    runner = lab()
    runner.measure(FINE, CASE)
    assert not (runner.spool.folder / "facts").exists()
    runner.close()
    assert "/" in (runner.spool.folder / "facts/mounts").read_text()


def test_a_board_that_is_gone_is_not_asked_for_long_facts(lab):
    runner = lab([BoardError("gone")])
    assert runner.measure(FINE, CASE).status is Status.FAILED
    asked = len(runner.bench.shell().asked)
    runner.close()
    assert len(runner.bench.shell().asked) == asked
    assert not (runner.spool.folder / "facts").exists()
