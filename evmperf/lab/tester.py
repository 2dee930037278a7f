"""Commands beside the board: on the tester over SSH or in a virtual EVM's network namespace, and
on the machine with the meter.

Each command runs in a session of its own there, so that a command that hangs is killed with all
that it started, and what it left running on purpose (a server under setsid) lives on.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence

from evmperf.measure.bench import Reply
from evmperf.model.errors import LabError, ToolError

_SSH_FAILED = 255
"""ssh's own exit status. A step never has it: its wrapper ends with that of a pipe."""
_SSH_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ControlMaster": "auto",
    "ControlPersist": "60",
}
_KILL_S = 20.0
_GROUP = "read -r g g g g g _ </proc/$$/stat; echo $g"
"""The first line is the process group there, which is known even if nothing else comes; sudo's child
has that of sudo."""
_AS_ROOT = '[ -O / ] || ! sudo -n true 2>/dev/null || exec sudo -n sh -c "$1" 2>/dev/null; eval "$1"'
"""Through sudo where `/` is another user's and sudo asks for no password; what it says by itself (an
unknown host name) is no output."""


def _as_root(command: str) -> str:
    """POSIX shell text for ssh, whose far end gives it to the user's own shell: run as root."""
    return f"exec sh -c {shlex.quote(_AS_ROOT)} sh {shlex.quote(command)}"


class CommandTester:
    """evmperf's Shell behind a local program that runs its last arguments on the tester, or here
    where there is none.

    `name` is what messages call the tester.
    """

    files = None  # it is no serial line

    def __init__(self, prefix: Sequence[str], name: str, *, over_ssh: bool = False) -> None:
        self.name = name
        self._prefix = list(prefix)
        self._over_ssh = over_ssh
        self._running: subprocess.Popen[bytes] | None = None
        self._forbidden: LabError | None = None

    def run(self, command: str, timeout_s: float) -> Reply:
        """Run a command; raises ToolError when it hangs (killed), LabError without a tester."""
        process = self._running = self._start(command)
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            self._end(process, error.output or b"")
            raise ToolError(
                f"`{command[:80]}` did not end within {timeout_s:g} s on {self.name}: it was killed"
            ) from None
        finally:
            self._running = None
        group, text = _group(output)
        if self._forbidden:
            raise self._forbidden
        if not group:
            said = text.strip().splitlines() or [f"exit status {process.returncode}"]
            raise LabError(f"{self.name} cannot be reached: {said[-1]}")
        if process.returncode == _SSH_FAILED:
            raise LabError(f"the connection to {self.name} was lost during `{command[:80]}`")
        return Reply(process.returncode, text)

    def forbid(self, error: LabError) -> None:
        """End the running command, which raises `error`; later ones run. Callable in any thread."""
        self._forbidden = error
        process = self._running
        if process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Give up the connection, if there is one."""

    def _start(self, command: str) -> subprocess.Popen[bytes]:
        text = f"exec 2>&1; {_GROUP}; {command}"
        arguments = [*self._prefix, *([_as_root(text)] if self._over_ssh else ["sh", "-c", text])]
        try:
            return subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise LabError(f"{arguments[0]} cannot be started: {error.strerror}") from None

    def _end(self, process: subprocess.Popen[bytes], output: bytes) -> None:
        """Kill the command there, which a cut connection would not do, and then our end of it."""
        group, _ = _group(output)
        try:
            if group:
                kill = self._start(f"kill -9 -{group}")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    kill.communicate(timeout=_KILL_S)
                _kill(kill)
        finally:
            _kill(process)
        if not group:
            raise LabError(f"{self.name} does not answer")


class SshTester(CommandTester):
    """A tester behind OpenSSH's client, over one connection; `options` are further `-o NAME=VALUE`."""

    def __init__(self, host: str, options: Sequence[str] = (), name: str = "") -> None:
        # Short, because a socket's path has 108 bytes at most.
        self._folder = tempfile.TemporaryDirectory(prefix="evmperf-ssh")
        words = {**_SSH_OPTIONS, "ControlPath": f"{self._folder.name}/%C"}
        own = [word for name, value in words.items() for word in ("-o", f"{name}={value}")]
        self._host = host
        self._ssh = ["ssh", *own, *options]
        super().__init__([*self._ssh, "--", host], name or f"the tester {host}", over_ssh=True)

    def close(self) -> None:
        """End the shared connection."""
        command = [*self._ssh, "-O", "exit", "--", self._host]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, timeout=_KILL_S, check=False)
        self._folder.cleanup()


def _group(output: bytes) -> tuple[str, str]:
    """The process group that a command said first, "" if none, and what came after it."""
    text = output.decode("utf-8", "replace")
    first, _, rest = text.partition("\n")
    return (first, rest) if first.isdigit() else ("", text)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()
