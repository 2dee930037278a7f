"""How benches start, live side by side, and end, also against their will."""

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from benchlab import processes, wait_for_end
from evmperf_virtual.client import LabClient

from evmperf.model.errors import EvmperfError, LabError, UsageError
from evmperf.model.exits import ExitStatus
from selftests.support import devices, programs
from selftests.support.placelab import until
from selftests.support.stamps import Heard

pytestmark = pytest.mark.virtual_evm


cli = functools.partial(programs.evmperf, "virtual", timeout_s=60)


def namespaces():
    folder = Path("/run/netns")
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_two_boards_side_by_side(make_bench):
    first, second = make_bench("side-a"), make_bench("side-b")
    for bench in (first, second):
        bench.on()
    with contextlib.closing(Heard(first)) as a, contextlib.closing(Heard(second)) as b:
        for bench, line in ((first, a), (second, b)):
            bench.off()
            line.drain()
            bench.on()
            line.stop_autoboot()
        one, two = first.status(), second.status()
        assert one.qemu_pid in processes(first.folder)
        assert two.qemu_pid in processes(second.folder)
        assert {path.name for path in (first.folder / "disks").iterdir()} == {
            path.name for path in (second.folder / "disks").iterdir()
        }
        a.send(b"setenv who first; printenv who\n")
        a.wait_for(b"who=first")
        b.drain()
        assert b"first" not in b.said
        if one.tester and two.tester:
            assert one.tester.namespace != two.tester.namespace
            # Board files name addresses, so each board finds its tester at the same ones.
            assert one.tester.nics == two.tester.nics
            routes = [*one.tester.command, "ip", "route", "show", "default"]
            assert subprocess.check_output(routes) == b"", "a tester has no way out"
        first.off()
        assert second.status().qemu_pid == two.qemu_pid


def test_disks_are_kept_and_made_anew_on_request(make_bench):
    bench = make_bench("disks")
    disk = next(path for path in (bench.folder / "disks").iterdir() if path.suffix == ".img")
    size = disk.stat().st_size
    with disk.open("r+b") as file:
        file.write(b"written by the board")
    bench.stop()
    bench = make_bench("disks")
    assert disk.read_bytes()[:20] == b"written by the board"
    bench.stop()
    make_bench("disks", fresh=True)
    assert disk.read_bytes()[:20] != b"written by the board"
    assert disk.stat().st_size == size


def test_killed_bench_leaves_no_qemu_and_is_cleaned_up(make_bench):
    before = namespaces()
    bench = make_bench("killed")
    bench.on()
    status = bench.status()
    os.kill(status.pid, signal.SIGKILL)
    wait_for_end(status.qemu_pid)
    until(lambda: not bench.running)
    with pytest.raises(LabError, match="is not running"):
        bench.status()
    bench = make_bench("killed")
    bench.on()
    os.kill(bench.status().pid, signal.SIGKILL)
    until(lambda: not bench.running)
    assert bench.stop() is False
    assert namespaces() == before


def test_processes_in_the_tester_end_with_it(make_bench):
    bench = make_bench("server")
    tester = bench.status().tester
    if tester is None:
        pytest.skip("no tester without root")
    with subprocess.Popen([*tester.command, "sleep", "600"]) as server:
        pids = ["ip", "netns", "pids", tester.namespace]
        until(lambda: bool(subprocess.check_output(pids)))
        assert bench.stop()
        assert server.wait(10) == -signal.SIGKILL
    assert tester.namespace not in namespaces()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_everything(make_bench, number):
    before = namespaces()
    bench = make_bench("signal")
    bench.on()
    status = bench.status()
    os.kill(status.pid, number)
    wait_for_end(status.pid)
    assert not processes(bench.folder)
    assert namespaces() == before


def test_starting_twice(make_bench, monkeypatch):
    monkeypatch.setenv("CI_JOB_TOKEN", "s3cret")
    bench = make_bench("twice")
    pid = bench.status().pid
    assert b"s3cret" not in Path(f"/proc/{pid}/environ").read_bytes(), "it outlives the job that started it"
    again = LabClient("twice")
    assert not again.start("virtual")
    assert again.status().pid == pid
    with pytest.raises(UsageError, match="with variant virtual"):
        again.start("other")
    with pytest.raises(UsageError, match="disks cannot be made anew"):
        bench.start(fresh=True)
    with pytest.raises(UsageError, match="already running with serial port"):
        bench.start(serial_port=1)


@pytest.mark.parametrize("which", ["serial", "power"])
def test_busy_port(state, built_image, which):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        bench = LabClient("busy")
        ports = {"serial_port": 0, "power_port": 0, f"{which}_port": port}
        with pytest.raises(LabError, match=f"the {which} port 127.0.0.1:{port} cannot be opened"):
            bench.start(**ports)
    assert not bench.running


def test_variant_that_is_not_built(state):
    with pytest.raises(EvmperfError, match="nonsense"):
        LabClient("unbuilt").start("nonsense", serial_port=0, power_port=0)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "-x", "A", "x" * 33, "x\n"])
def test_bad_name(state, name):
    with pytest.raises(UsageError, match="is not valid"):
        LabClient(name)


@pytest.fixture
def full_disk(tmp_path, monkeypatch):
    with devices.small(tmp_path / "small", "64k") as folder:
        monkeypatch.setenv("EVMPERF_STATE", str(folder))
        yield folder


def test_full_disk_is_told(built_image, full_disk):
    bench = LabClient("full")
    with pytest.raises(LabError, match=r"disk root .*No space left"):
        bench.start(serial_port=0, power_port=0)
    assert not bench.running
    assert not list(bench.folder.glob("disks*")), "no half-made disks stay"


def test_bench_that_hangs_is_ended(make_bench, monkeypatch):
    monkeypatch.setattr("evmperf_virtual.client.STOP_TIMEOUT", 1.0)
    monkeypatch.setattr("evmperf_virtual.client._ANSWER_TIMEOUT", 1.0)
    bench = make_bench("hung")
    bench.on()
    status = bench.status()
    os.kill(status.pid, signal.SIGSTOP)
    with pytest.raises(LabError, match="does not answer"):
        bench.status()
    assert bench.stop()
    wait_for_end(status.qemu_pid)


def test_cli(make_bench, tmp_path):
    ports = ("--serial-port", "0", "--power-port", "0")
    done = cli("start", "by-cli", *ports)
    assert done.returncode == 0, done.stderr
    assert "started: serial" in done.stdout
    assert len(done.stdout.splitlines()) == 1
    assert "is already running" in cli("start", "by-cli").stdout
    assert cli("on", "by-cli").returncode == 0
    assert "power on" in cli("status").stdout
    assert json.loads(cli("status", "--json").stdout)["by-cli"]["power"] is True
    assert cli("off", "by-cli").returncode == 0
    assert cli("stop", "by-cli").stdout == "board by-cli stopped\n"
    done = cli("stop", "by-cli")
    assert done.returncode == 0
    assert done.stdout == "board by-cli was not running\n"
    done = cli("on", "by-cli")
    assert done.returncode == ExitStatus.LAB_BROKEN
    assert "by-cli is not running" in done.stderr
