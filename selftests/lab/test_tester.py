"""The tester's shell, on this machine and over SSH to a real sshd on loopback."""

import contextlib
import json
import os
import resource
import subprocess
from types import SimpleNamespace

import pytest

from evmperf.lab import tester as testers
from evmperf.lab.tester import CommandTester, SshTester
from evmperf.measure import shellstep
from evmperf.model import limits
from evmperf.model.errors import LabError, ToolError
from selftests.support import web
from selftests.support.placelab import until
from selftests.support.ports import free_port
from selftests.support.sshd import Sshd


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()
    server.log.close()


@pytest.fixture(params=["here", "ssh"])
def tester(request):
    if request.param == "here":
        yield CommandTester(["env"], "this machine")
        return
    server = request.getfixturevalue("sshd")
    tester = SshTester("127.0.0.1", server.options)
    yield tester
    tester.close()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Nobody may be there to collect what has ended.
    state = subprocess.run(["ps", "-o", "stat=", str(pid)], capture_output=True, check=False).stdout
    return bool(state.strip()) and not state.startswith(b"Z")


def killed(run, seconds=1.5):
    """How a command that hangs ended: in its time, of which a busy host gets more to start it at all."""
    for within_s in (seconds, 6 * seconds, 30 * seconds):
        with contextlib.suppress(LabError):
            with pytest.raises(ToolError) as raised:
                run(within_s)
            return str(raised.value)
    pytest.fail("it was never started")


def test_output_and_exit_status_come_back(tester):
    reply = tester.run('echo out; echo err >&2; printf %s "it\'s"; exit 7', 20)
    assert (reply.status, reply.text) == (7, "out\nerr\nit's")
    assert tester.run("true", 20).text == ""
    assert tester.run("cat", 20).text == "", "there is nothing to read"


def test_a_command_that_hangs_is_killed_with_all_that_it_started(tester, tmp_path):
    pids = tmp_path / "pids"
    stubborn = f"trap : INT TERM HUP; echo $$ >>{pids}; while :; do sleep 0.1; done"
    tester.run("true", 60)  # the connection is there

    def run(within_s):
        pids.unlink(missing_ok=True)
        with pytest.raises(ToolError, match=r"within .* s on .*: .*killed"):
            tester.run(f"sh -c '{stubborn}' & {stubborn}", within_s)
        if len(pids.read_text().split()) < 2:
            raise LabError("a busy host has not started both")
        raise ToolError("killed")

    killed(run)
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 2
    until(lambda: not any(map(alive, started)), 10)  # a killed process ends when it is next scheduled
    assert tester.run("echo usable", 20).text == "usable\n"


def test_a_host_that_floods_takes_no_memory_without_end(monkeypatch):
    """It floods the command that is to end the flood, too."""
    monkeypatch.setattr(testers, "_KILL_S", 3.0)
    tester = CommandTester(["sh", "-c", "echo 99999999; exec yes"], "the tester")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ToolError, match="printed more than 32 MiB on the tester"):
        tester.run("true", 60)
    much_kib = 8 * limits.REPLY_BYTES >> 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < much_kib


def test_a_command_that_floods_is_killed(tester):
    with pytest.raises(ToolError, match=r"`yes` printed more than 32 MiB on .*: it was killed"):
        tester.run("yes", 300)
    assert tester.run("echo usable", 20).text == "usable\n"


def test_a_server_that_was_left_running_lives_on(tester, tmp_path):
    file = tmp_path / "pid"
    tester.run(f"setsid sleep 1000 >/dev/null 2>&1 & echo $! >{file}", 20)
    killed(lambda s: tester.run("sleep 1000", s))
    pid = int(file.read_text())
    assert alive(pid)
    tester.run(f"kill {pid}", 20)


def test_steps_run_there(tester, tmp_path):
    folder = str(tmp_path / "steps")
    shellstep.install(tester, folder)
    done = shellstep.run(tester, 'head -c 100000 /dev/zero | tr "\\0" x >"$OUT/x"', 20, folder=folder)
    assert (done.status, len(done.files["x"])) == (0, 100000)
    assert "did not end" in killed(lambda s: shellstep.run(tester, "sleep 1000", s, folder=folder))
    assert shellstep.run(tester, "exit 3", 20, folder=folder).status == 3


def test_one_connection_serves_all_commands(sshd):
    tester = SshTester("127.0.0.1", sshd.options)
    try:
        connections = {tester.run("echo $SSH_CONNECTION", 20).text for _ in range(3)}
        assert len(connections) == 1
    finally:
        tester.close()
    assert "127.0.0.1" in connections.pop()


@pytest.mark.parametrize(
    ("known", "said"), [("key", "refused; check its address"), ("port", "Permission denied")]
)
def test_a_tester_that_is_not_there_or_has_not_our_key_is_named(sshd, known, said):
    port, key = (sshd.port, "/dev/null") if known == "port" else (free_port(), sshd.folder / "user")
    options = [word for word in sshd.options if word not in ("-i", str(sshd.folder / "user"))]
    options[options.index("-p") + 1] = str(port)
    tester = SshTester("127.0.0.1", [*options, "-o", f"IdentityFile={key}"])
    with pytest.raises(LabError, match=rf"the tester 127.0.0.1 cannot be reached: .*{said}"):
        tester.run("true", 20)
    tester.close()


def test_a_tester_that_is_lost_in_the_middle_is_named(sshd):
    tester = SshTester("127.0.0.1", sshd.options)
    assert tester.run("true", 20).status == 0
    with pytest.raises(LabError, match=r"connection to the tester 127.0.0.1 was lost"):
        tester.run("sleep 1; kill -9 $(ps -o ppid= -p $$ | tr -d ' '); sleep 1000", 60)
    tester.close()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["no-such-program"], r"no-such-program .*: No such file"),
        (["ip", "netns", "exec", "no-such-namespace"], r"tester x .*no-such-namespace"),
    ],
)
def test_a_way_to_the_tester_that_is_missing_is_named(command, said):
    with pytest.raises(LabError, match=said):
        CommandTester(command, "the tester x").run("true", 10)


def test_only_this_machine_is_asked_for_the_command_of_a_virtual_tester(tmp_path):
    """A board file may name any power switch: its answer is not run here."""
    asked = []

    class Stranger(web.Handler):
        def do_GET(self):
            asked.append(self.path)
            said = {
                "ssh_host": "",
                "ssh_options": [],
                "command": ["touch", str(tmp_path / "x")],
                "namespace": "x",
            }
            self.say(200, json.dumps(said).encode())

    with web.serving(Stranger, "127.0.0.2") as server:
        host = f"{server.url}/power/{{index}}"
        target = SimpleNamespace(get_resource=lambda _: SimpleNamespace(host=host))
        with pytest.raises(LabError, match=r"virtual EVM .*answer"):
            testers.open_tester(SimpleNamespace(tester="virtual"), target)
    assert asked == []
