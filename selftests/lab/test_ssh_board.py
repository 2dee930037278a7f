"""A board that is reached over SSH alone: a real sshd on loopback, Labgrid's SSHDriver."""

import contextlib
import getpass
import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
import yaml
from labgrid import Environment

from evmperf.benchmarks.families import boot as boot_readings
from evmperf.benchmarks.tools import systemd_analyze
from evmperf.boards import board as boards
from evmperf.commands.cli.main import main
from evmperf.lab import sshlink
from evmperf.lab.bench import LabgridBench
from evmperf.lab.desk import identity
from evmperf.lab.desk.identity import SshAddress
from evmperf.measure.runs import spool
from evmperf.model.errors import BoardError, LabError, RefusedOutput, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.results import Status
from selftests.support import programs, spools, sudoer
from selftests.support.deskboard import this_machine
from selftests.support.influxd import TOKEN, points
from selftests.support.sshd import Sshd, board_file


@pytest.fixture
def open_bench(tmp_path, sshd):
    with contextlib.ExitStack() as stack:

        def open_it(**said):
            file = board_file(tmp_path, sshd, **said)
            environment = Environment(str(file))
            stack.callback(environment.cleanup)
            return LabgridBench(environment.get_target("main"), boards.load(file))

        yield open_it


@pytest.fixture
def boot_id(tmp_path, monkeypatch):
    """The file that says which boot the board is in; it begins with `one`."""
    file = tmp_path / "boot_id"
    file.write_text("one")
    monkeypatch.setattr(sshlink, "_BOOT_ID", f"cat {file}")
    return file


@pytest.mark.parametrize("known", ["its key", "its key, hashed", "another key", "another host's"])
def test_a_host_key_is_checked_where_known_hosts_has_one(open_bench, sshd, tmp_path, monkeypatch, known):
    (tmp_path / ".ssh").mkdir()
    file = tmp_path / ".ssh/known_hosts"
    key = (sshd.folder / ("host.pub" if "its key" in known else "authorized")).read_text()
    port = sshd.port + 1 if known == "another host's" else sshd.port
    file.write_text(f"[127.0.0.1]:{port} {key}")
    if "hashed" in known:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=True, capture_output=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    address = SshAddress(getpass.getuser(), "127.0.0.1", sshd.port, str(sshd.folder / "user"))
    if known != "another key":
        assert open_bench().shell().run("echo here", 10).text == "here\n"
        assert identity.ask(address, "echo here")[0] == "here\n"
        return
    remedy = rf"another host key than known_hosts.*ssh-keygen -R '\[127.0.0.1\]:{sshd.port}'"
    with pytest.raises(BoardError, match=remedy):
        open_bench(boot_timeout=30).shell()
    with pytest.raises(LabError, match=remedy):
        identity.ask(address, "echo here")


def test_a_shell_over_ssh_runs_commands_and_stays(open_bench):
    bench = open_bench()
    shell = bench.shell()
    reply = shell.run("echo 'two  words'; echo wrong >&2; exit 3", 10)
    assert (reply.status, reply.text) == (3, "two  words\nwrong\n")
    assert bench.shell() is shell
    assert bench.boots() == []
    with pytest.raises(UsageError, match="no console"):
        bench.uboot()
    bench.close()


@pytest.mark.parametrize(("password", "said"), [(sudoer.PASSWORD, "root"), ("wrong", "Permission denied")])
def test_the_board_files_password_logs_in(tmp_path, password, said):
    sshd = Sshd(tmp_path, prefix=sudoer.prefix(tmp_path, "ALL=(ALL) NOPASSWD: ALL"))
    service = {"address": "127.0.0.1", "username": sudoer.NAME, "port": sshd.port, "password": password}
    main = {"resources": {"NetworkService": service}, "drivers": {"SSHDriver": {}}}
    (tmp_path / "lab.yaml").write_text(yaml.safe_dump({"targets": {"main": main}}))
    target = Environment(str(tmp_path / "lab.yaml")).get_target()
    shell = sshlink.SshShell(target.get_driver("SSHDriver", activate=False))
    try:
        answer = shell.run("id -un", 20).text
    except BoardError as error:
        answer = str(error)
    shell.close()
    sshd.stop()
    assert said in answer


def test_a_board_that_does_not_come_back_is_named_with_the_time(open_bench, sshd):
    bench = open_bench(boot_timeout=2)
    shell = bench.shell()
    sshd.stop()
    with pytest.raises(BoardError, match=r"127\.0\.0\.1"):
        shell.run("true", 10)
    bench.abandon()
    with pytest.raises(BoardError, match="SSH within 2 s"):
        bench.shell()
    (boot,) = bench.boots()
    assert boot.error


def test_a_reboot_is_noticed_by_the_boot_id(open_bench, boot_id):
    bench = open_bench()
    bench.shell()
    boot_id.write_text("two")
    assert bench.shell().run("true", 10).status == 0
    (boot,) = bench.boots()
    assert boot.error is None
    assert "rebooted by itself" in boot.notes[0]


def test_a_board_that_is_asked_to_reboot_is_awaited(open_bench, boot_id, monkeypatch):
    monkeypatch.setattr(sshlink, "_REBOOT", f"echo two >{boot_id}")
    bench = open_bench()
    monkeypatch.setattr(type(bench._strategy), "resets", "a warm boot")
    bench.shell()
    assert boot_id.read_text() == "one"
    bench.abandon()
    assert bench.shell().run("true", 10).status == 0
    assert boot_id.read_text() == "two\n"


def test_a_board_over_ssh_is_reset_by_its_line(open_bench, tmp_path, boot_id, monkeypatch):
    line = tmp_path / "line"
    line.write_text("0\n")
    monkeypatch.setattr(sshlink, "_REBOOT", "exit 1")
    reset = {"FileDigitalOutputDriver": {"filepath": str(line)}, "DigitalOutputResetDriver": {"delay": 1.0}}
    bench = open_bench(drivers=reset)

    def wire():
        while line.read_text() != "1\n":
            time.sleep(0.05)
        boot_id.write_text("two")

    board = threading.Thread(target=wire)
    board.start()
    try:
        bench.shell()
        bench.abandon()
        assert bench.shell().run("true", 10).status == 0
        board.join()
        assert line.read_text() == "0\n"
        assert [boot.warm for boot in bench.boots()] == ["a warm boot by reset line"]
    finally:
        line.write_text("1\n")


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("Startup finished in 2s (kernel) + 9.5s (userspace) = 11.5s", 11.5), ("sh: not found", None)],
)
def test_a_boot_over_ssh_is_as_systemd_tells_it(open_bench, boot_id, monkeypatch, said, seconds):
    analyze = boot_id.with_name("analyze")
    analyze.write_text(said)
    monkeypatch.setattr(sshlink, "_REBOOT", f"echo two >{boot_id}")
    monkeypatch.setattr(systemd_analyze, "COMMAND", f"cat {analyze}")
    bench = open_bench(boot_timeout=20)
    monkeypatch.setattr(type(bench._strategy), "resets", "a warm boot")
    boot = bench.cold_boot("")
    assert bench.power_cycles == 1
    if seconds is None:
        assert isinstance(boot.error, RefusedOutput)
        return
    found = {reading.metric: reading.value for reading in boot_readings.readings(boot)}
    assert found["boot_time"] == pytest.approx(seconds)
    assert "systemd" in boot_readings.condition(boot)
    assert boot_readings.condition(boot) != boot_readings.condition(replace(boot, parts={}))


def test_a_key_that_does_not_fit_is_said_at_once(open_bench, sshd):
    (sshd.folder / "authorized").write_text("")
    with pytest.raises(BoardError, match="Permission denied"):
        open_bench(boot_timeout=300).shell()


CASE = "openssl_throughput aes-128-cbc|1024"


def test_a_session_over_ssh_measures_linux_and_leaves_the_board_alone(
    tmp_path, sshd, own_influxd, monkeypatch, capsys
):
    """The database is away, and gets the points afterwards; a case is measured again from a file."""
    config = own_influxd.bucket()
    for name in ("url", "token", "org", "bucket"):
        monkeypatch.setenv(f"EVMPERF_INFLUX_{name.upper()}", getattr(config, name))
    own_influxd.stop()
    file, results, report = board_file(tmp_path, sshd), tmp_path / "results", tmp_path / "pytest-report.html"
    words = ["--lg-env", file, "-k", "boot_time or (openssl_throughput and aes-128-cbc and 1024)"]
    with this_machine():
        done = programs.pytest(
            *words, f"--results={results}", f"--html={report}", EVMPERF_STATE=str(tmp_path)
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All measured" in done.stdout
    assert "cannot be reached" in done.stdout
    assert "Nothing is lost: `evmperf push`" in done.stdout
    (folder,) = (path.parent for path in results.glob("*/run.json"))
    facts = json.loads((folder / "run.json").read_text())["facts"]
    assert facts["power"] == "none"
    assert facts["kernel"] == os.uname().release

    own_influxd.start()
    for _ in range(2):
        assert main(["push", str(folder)]) == 0
    records = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    measured = [record for record in records if record["record"] == "result"]
    samples = sum(len({s["repetition"] for s in result.get("samples", ())}) for result in measured)
    counted = [points(config, name) for name in ("runs", "cases", "samples")]
    assert counted == [1, len(measured), samples]
    # The report of pytest-html is there for those who ask, and tells no secret either.
    assert (folder / "report.html").as_uri() in report.read_text()
    for path in (report, *folder.rglob("*")):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes(), path
    assert TOKEN not in done.stdout + capsys.readouterr().out


PERF = f"""#!{sys.executable}
import pathlib, signal, sys
kind, *words = sys.argv[1:]
if kind == "script":
    sys.exit(print("openssl\\n\\t 7f1a2b SYMBOL+0x1f (/usr/lib/libcrypto.so.3)\\n" * 40))
signal.signal(signal.SIGINT, lambda *_: sys.exit())
pathlib.Path(words[words.index("-o") + 1]).write_text("data")
signal.pause()
"""
"""What perf does between the shell and its output; selftests/measuring/test_ospi.py has perf itself."""


def test_a_case_is_profiled_beside_runs_with_and_without_a_profile(tmp_path, capsys):
    for name in ("bin", "sshd"):
        (tmp_path / name).mkdir()
    program = tmp_path / "bin/perf"
    program.write_text(PERF.replace("SYMBOL", "aesni_cbc_encrypt"))
    program.chmod(0o755)
    sshd, run = Sshd(tmp_path / "sshd", path=program.parent), spools.a_run(id="desk-1", board="desk")
    run.facts.variation = [f"run:touch {tmp_path}/varied"]
    benchmark, case = CASE.split()
    row = spools.a_case(benchmark=benchmark, driver="crypto", case=case, profile="quick")
    words = ["why", "desk-1", CASE, "--profile", "--results", str(tmp_path)]
    spools.write(tmp_path, run, [row])
    try:
        assert main(words) == ExitStatus.USAGE
        assert "name one with --lg-env" in capsys.readouterr().err
        words += ["--lg-env", str(board_file(tmp_path, sshd))]
        assert main([*words[:2], "nothing", *words[3:]]) == ExitStatus.USAGE
        assert "has no case 'nothing'" in capsys.readouterr().err
        with this_machine():
            assert main([*words, "--against", "desk-1"]) == ExitStatus.OK
            alone = capsys.readouterr().out
            (stacks,) = tmp_path.glob("*/perf.folded")
            program.write_text(PERF.replace("SYMBOL", "aes_slow"))
            assert main([*words, "--against", str(stacks.parent)]) == ExitStatus.OK
            beside = capsys.readouterr().out
            program.write_text("#!/bin/sh\nexit 1\n")
            assert main(words) == ExitStatus.LAB_BROKEN
            newest = max(tmp_path.glob("*/results.jsonl"), key=lambda file: file.stat().st_mtime_ns)
    finally:
        sshd.stop()
    assert (tmp_path / "varied").exists(), "it is measured with the run's own variation"
    assert re.search(r"^aesni_cbc_encrypt +100\.0%$", alone, re.MULTILINE)
    assert "here: 40 samples (parts within 15.5%), and CPUs idle 0%" in alone
    assert "desk-1 has no profile" in alone
    assert stacks.read_text() == "openssl;aesni_cbc_encrypt 40\n"
    assert re.search(r"^aes_slow +100\.0% +0\.0%$", beside, re.MULTILINE)
    assert "in the good run: 40 samples" in beside
    unprofiled = "no profile: perf recorded nothing: the tool ended before its first sample"
    assert unprofiled in capsys.readouterr().err
    assert [(r.status, r.conditions["perf"]) for r in spool.read_results(newest.parent)] == [
        (Status.MEASURED, unprofiled)
    ]
