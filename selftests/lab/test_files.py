"""Long outputs beside the console: Labgrid's SSHDriver, and a real sshd on loopback."""

import getpass

import pytest
from labgrid import Target
from labgrid.driver import SSHDriver
from labgrid.resource import NetworkService

from evmperf.lab.sshlink import SshFiles
from evmperf.measure import shellstep
from selftests.support.fakes import LocalShell

LONG = 'head -c 20000 /dev/urandom | base64 >"$OUT/noise"'


@pytest.fixture
def files(sshd):
    target = Target("board")
    NetworkService(target, "net", address="127.0.0.1", username=getpass.getuser(), port=sshd.port)
    SSHDriver(target, "ssh", keyfile=str(sshd.folder / "user"), connection_timeout=10.0)
    files = SshFiles.of(target)
    yield files
    files.close()


class Listening(LocalShell):
    """Keeps what the console carried."""

    def __init__(self, folder, files):
        super().__init__(folder)
        self.files = files
        self.carried = []

    def run(self, command, timeout_s):
        reply = super().run(command, timeout_s)
        self.carried.append(len(reply.text))
        return reply


@pytest.fixture
def shell(tmp_path, files):
    shell = Listening(tmp_path / "board", files)
    shellstep.install(shell, str(shell.folder))
    shell.carried.clear()
    shell.asked.clear()
    return shell


def step(shell, command):
    return shellstep.run(shell, command, 30, folder=str(shell.folder))


def test_a_long_output_comes_beside_the_console_and_a_short_one_over_it(shell, files):
    output = step(shell, LONG)
    assert len(output.files["noise"]) > 20000
    assert output.fetches == 1
    assert sum(shell.carried) < 100
    assert not files.broken
    assert step(shell, "echo said").files["log"] == "said\n"
    assert sum(shell.carried) > 100
    assert SshFiles.of(Target("board")) is None, "there is no driver"


def test_a_long_command_goes_beside_in_one_piece(shell):
    words = "x" * 5000
    output = step(shell, f"echo {words}")
    assert output.files["log"] == f"{words}\n"
    assert len(shell.asked) == 1


@pytest.mark.parametrize("fault", ["lost", "damaged"])
def test_what_the_network_does_not_bring_is_fetched_over_the_console(shell, sshd, files, fault):
    if fault == "lost":
        assert files.put(f"{shell.folder}/there", b"x")
        sshd.stop()
    else:
        files.get = lambda path: b"not what was written"
    output = step(shell, LONG)
    assert len(output.files["noise"]) > 20000
    assert output.fetches == 2
    assert bool(files.broken) == (fault == "lost")


def test_a_network_that_was_never_there_costs_one_attempt(tmp_path):
    target = Target("board")
    NetworkService(target, "net", address="127.0.0.1", username="root", port=1)
    SSHDriver(target, "ssh", connection_timeout=0.5)
    shell = Listening(tmp_path / "board", SshFiles.of(target))
    shellstep.install(shell, str(shell.folder))
    output = step(shell, LONG)
    assert len(output.files["noise"]) > 20000
    assert output.fetches == 2
    assert "ssh" in shell.files.broken.lower()
