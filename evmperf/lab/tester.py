"""Commands beside the board: on the tester, which is a machine behind SSH, this one (`--tester local`) or the
one beside a virtual EVM, and on the machine with the meter.

Each command runs in a session of its own there, so that a command that hangs is killed with all
that it started, and what it left running on purpose (a server under setsid) lives on.
"""

import contextlib
import json
import os
import re
import select
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from ipaddress import ip_address, ip_interface
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evmperf.boards.board import Board
from evmperf.boards.vocabulary import CABLED
from evmperf.measure.bench import ShellReply
from evmperf.model import limits
from evmperf.model.errors import EvmperfError, LabError, ToolError

LOCAL = "local"
"""The tester that is this machine: `local`, or `local:INTERFACE`."""
_LOCAL_S = 15.0
VIRTUAL = "virtual"
"""The name of the tester that stands beside a virtual EVM."""
_ANSWER_S = 10.0
_TESTER_S = 300.0
"""The tester's answer may wait until it has booted."""
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
_SSH_PORT = 22
_ASKPASS = "#!/bin/sh\nprintf '%s\\n' \"$EVMPERF_SSH_PASSWORD\"\n"
"""Answers ssh's question for a password (ssh(1), SSH_ASKPASS), which no list of processes shows."""
_KILL_S = 20.0
_GROUP = "read -r g g g g g _ </proc/$$/stat; echo $g"
"""The first line is the process group there, which is known even if nothing else comes; sudo's child
has that of sudo."""
_AS_ROOT = '[ -O / ] || ! sudo -n true 2>/dev/null || exec sudo -n sh -c "$1" 2>/dev/null; eval "$1"'
"""Through sudo where `/` is another user's and sudo asks for no password; what it says by itself (an
unknown host name) is no output."""


def host_key_options(host: str, port: int) -> list[str]:
    """ssh's options for a board's host key: checked, as `ssh` does it, where this user's or this machine's
    known_hosts has one for the address. Else it is not: boards have another one after each image.
    """
    name = host if port == _SSH_PORT else f"[{host}]:{port}"
    folders = (Path.home() / ".ssh", Path("/etc/ssh"))
    files = [folders[0] / "known_hosts", folders[0] / "known_hosts2", folders[1] / "ssh_known_hosts"]
    with contextlib.suppress(OSError):
        for file in filter(Path.is_file, files):
            command = ["ssh-keygen", "-F", name, "-f", str(file)]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                key_files = " ".join(f'"{one}"' for one in files)
                return ["-o", "StrictHostKeyChecking=yes", "-o", f"UserKnownHostsFile={key_files}"]
    return ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]


def host_key_trouble(output: str, host: str, port: int) -> str:
    """A sentence where ssh refused a host key, "" for other words of it."""
    if "Host key verification failed" not in output:
        return ""
    name = host if port == _SSH_PORT else f"[{host}]:{port}"
    return (
        f"{name} has another host key than known_hosts: another machine answers there, or the board has "
        f"another system now; if that is so, ssh-keygen -R '{name}'"
    )


class CommandTester:
    """evmperf's Shell behind a local program that runs its last arguments on the tester, which messages call
    `name`, or here where there is none.
    """

    files = None  # it is no serial line
    _variables: Mapping[str, str] | None = None
    """The environment of that program, None for ours."""

    def __init__(self, prefix: Sequence[str], name: str, *, over_ssh: bool = False) -> None:
        self.name = name
        self._prefix = list(prefix)
        self._over_ssh = over_ssh
        self._running: subprocess.Popen[bytes] | None = None
        self._forbidden: LabError | None = None

    @property
    def words_here(self) -> Sequence[str]:
        """Words before a program that runs on this machine, on the tester's networks; () behind SSH."""
        return () if self._over_ssh else self._prefix

    def run(self, command: str, timeout_s: float) -> ShellReply:
        """Run a command; raises ToolError when it hangs (killed), LabError without a tester."""
        process = self._running = self._start(command)
        try:
            output = _output(process, timeout_s)
        except (subprocess.TimeoutExpired, _Flood) as error:
            self._end(process, error.output)
            much = f"printed more than {limits.mib(limits.REPLY_BYTES)}"
            why = much if isinstance(error, _Flood) else f"did not end within {timeout_s:g} s"
            raise ToolError(f"`{command[:80]}` {why} on {self.name}: it was killed") from None
        finally:
            self._running = None
        group, text = _group(output)
        if self._forbidden:
            raise self._forbidden
        if not group:
            lines = text.strip().splitlines() or [f"exit status {process.returncode}"]
            remedy = "; check its address, its network and its SSH server" if self._over_ssh else ""
            raise LabError(f"{self.name} cannot be reached: {lines[-1]}{remedy}")
        if process.returncode == _SSH_FAILED:
            raise LabError(f"the connection to {self.name} was lost during `{command[:80]}`")
        return ShellReply(process.returncode, text)

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
        words = ["sh", "-c", text]
        if self._over_ssh:
            # One word, which the far end gives to the user's own shell.
            words = [f"exec sh -c {shlex.quote(_AS_ROOT)} sh {shlex.quote(text)}"]
        arguments = [*self._prefix, *words]
        try:
            return subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self._variables,
            )
        except OSError as error:
            raise LabError(f"{arguments[0]} cannot be started: {error.strerror}; install it here") from None

    def _end(self, process: subprocess.Popen[bytes], output: bytes) -> None:
        """Kill the command there, which a cut connection would not do, and then our end of it."""
        group, _ = _group(output)
        ending = [process]
        try:
            if group:
                ending.append(self._start(f"kill -9 -{group}"))
                with contextlib.suppress(subprocess.TimeoutExpired, _Flood):
                    _output(ending[1], _KILL_S)
        finally:
            for each in ending:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(each.pid, signal.SIGKILL)
                each.wait()
                if each.stdout:
                    each.stdout.close()
        if not group:
            raise LabError(f"{self.name} does not answer")


class SshTester(CommandTester):
    """A tester behind OpenSSH's client, over one connection; `options` of ssh go before its own. A `password`
    is that of the login; without one only keys are tried.
    """

    def __init__(
        self,
        host: str,
        options: Sequence[str] = (),
        name: str = "",
        *,
        program: str = "ssh",
        password: str | None = None,
    ) -> None:
        # Short, because a socket's path has 108 bytes at most.
        self._folder = tempfile.TemporaryDirectory(prefix="evmperf-ssh")
        words = {**_SSH_OPTIONS, "ControlPath": f"{self._folder.name}/%C"}
        own = [word for name, value in words.items() for word in ("-o", f"{name}={value}")]
        self._host = host
        if password is not None:
            options = ["-o", "BatchMode=no", "-o", "NumberOfPasswordPrompts=1", *options]
        self._ssh = [program, *options, *own]
        super().__init__([*self._ssh, "--", host], name or f"the tester {host}", over_ssh=True)
        if password is not None:
            script = Path(self._folder.name) / "askpass"
            script.write_text(_ASKPASS, "ascii")
            script.chmod(0o700)
            asking = {"SSH_ASKPASS": str(script), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ""}
            self._variables = {**os.environ, **asking, "EVMPERF_SSH_PASSWORD": password}

    def close(self) -> None:
        """End the shared connection."""
        command = [*self._ssh, "-O", "exit", "--", self._host]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            nothing = subprocess.DEVNULL
            subprocess.run(command, stdout=nothing, stderr=nothing, timeout=_KILL_S, check=False)
        self._folder.cleanup()


class LocalTester(CommandTester):
    """A root shell here, with the tester's addresses until `close`; raises LabError."""

    def __init__(self, board: Board, net: Path = Path("/sys/class/net")) -> None:
        super().__init__(() if os.geteuid() == 0 else ("sudo", "-n"), "this machine")
        self._net = net
        self._added: list[str] = []
        if self._prefix:
            try:
                self.run("true", _LOCAL_S)
            except LabError as error:
                raise LabError(
                    "this machine as the tester needs root, for an address on the cable: run "
                    f"`sudo -v` first ({error})"
                ) from None
        links = self._ip("-4 address")
        holders = {e["local"]: link["ifname"] for link in links for e in link.get("addr_info", ())}
        cables = [board.options.cable(section) for section in CABLED if section in board.features]
        lengths = {
            str(ip_address(c.tester_address)): ip_interface(c.board_address).network.prefixlen
            for c in cables
            if c.tester_address and c.board_address
        }
        holder = next((holders[address] for address in lengths if address in holders), "")
        interface = board.tester.partition(":")[2] or holder or self._cable()
        if not re.fullmatch(r"[\w.@-]{1,15}", interface) or not (net / interface).exists():
            raise LabError(f"this machine has no network interface {interface!r}")
        speed = _text(net / interface / "speed")
        speed = f"{speed} Mbit/s" if speed.isdigit() else "speed unknown"
        self.limits = f"this machine, {os.cpu_count()} processors, {interface}, {speed}"
        """What bounds the figures that are measured against this machine."""
        try:
            for address, length in lengths.items():
                if address not in holders:
                    place = f"{address}/{length} dev {interface}"
                    self._do(f"ip address add {place}")
                    self._added.append(place)
                    self._do(f"ip link set {interface} up")
        except LabError:
            self.close()
            raise

    def close(self) -> None:
        """Put the addresses back as they were."""
        while self._added:
            self._do(f"ip address del {self._added.pop()}")

    def _cable(self) -> str:
        """The one wired interface with a carrier that does not lead to the world."""
        world = {route.get("dev") for route in self._ip("route show default")}
        wired = [path for path in sorted(self._net.iterdir()) if (path / "device").exists()]
        wired = [path for path in wired if not (path / "wireless").exists() and path.name not in world]
        names = [path.name for path in wired if _text(path / "carrier") == "1"]
        if len(names) != 1:
            which = f"{' and '.join(names)} may be" if names else "none is"
            raise LabError(
                f"which interface of this machine has the board's cable is not clear: {which} it; "
                f"say --tester {LOCAL}:INTERFACE, and look at the cable"
            )
        return names[0]

    def _ip(self, words: str) -> list[dict[str, Any]]:
        try:
            return list(json.loads(self._do(f"ip -j {words}") or "[]"))
        except ValueError as error:
            raise LabError(f"`ip -j {words}` of this machine did not answer in JSON") from error

    def _do(self, command: str) -> str:
        try:
            reply = self.run(command, _LOCAL_S)
        except EvmperfError as error:
            raise LabError(str(error)) from error
        if reply.status:
            raise LabError(f"`{command}` failed on this machine: {reply.text.strip()[-200:]}")
        return reply.text


class _Flood(Exception):
    """A command prints more than is read of one; `output` is what was."""

    def __init__(self, output: bytes) -> None:
        super().__init__("it prints too much")
        self.output = output


def _output(process: subprocess.Popen[bytes], timeout_s: float) -> bytes:
    """All that a process prints until its end; raises TimeoutExpired and _Flood, with what came."""
    assert process.stdout
    deadline, output = time.monotonic() + timeout_s, bytearray()
    readable = select.poll()
    readable.register(process.stdout, select.POLLIN)
    while readable.poll(max(deadline - time.monotonic(), 0) * 1000):
        if not (block := os.read(process.stdout.fileno(), 1 << 16)):
            process.stdout.close()
            process.wait()
            return bytes(output)
        output += block
        if len(output) > limits.REPLY_BYTES:
            raise _Flood(bytes(output))
    raise subprocess.TimeoutExpired(process.args, timeout_s, bytes(output))


def _text(file: Path) -> str:
    try:
        return file.read_text("ascii").strip()
    except (OSError, ValueError):  # a link that is down has no speed
        return ""


def ask(host: str, method: str, what: str, body: str = "", timeout_s: float = _ANSWER_S) -> str:
    """The answer of the lab at the `host` of a NetworkPowerPort; raises LabError."""
    import requests  # noqa: PLC0415  # slow to import, and only a virtual EVM's lab is asked by HTTP

    base, _, _ = host.partition("/power/")  # http://HOST:PORT/power/{index}
    try:
        answer = requests.request(method, f"{base}/{what}", data=body, timeout=timeout_s)
    except requests.RequestException as error:
        raise LabError(
            f"the lab of the virtual EVM does not answer ({type(error).__name__}): is it running? "
            f"(`evmperf virtual status`)"
        ) from None
    if answer.status_code != requests.codes.ok:
        raise LabError(f"the lab of the virtual EVM refused: {answer.text.strip()}")
    return answer.text.strip()


def open_tester(board: Board, target: Any) -> CommandTester:
    """The machine beside the board; raises LabError when there is none."""
    if board.tester.partition(":")[0] == LOCAL:
        return LocalTester(board)
    if board.tester == VIRTUAL:
        switch = urlsplit(target.get_resource("NetworkPowerPort").host)
        # The answer is a command to run: only this machine's lab is asked for it.
        host = f"http://127.0.0.1:{switch.port or 0}"
        reply = json.loads(ask(host, "GET", "tester", timeout_s=_TESTER_S))
        if reply["ssh_host"]:
            return SshTester(reply["ssh_host"], reply["ssh_options"])
        return CommandTester(reply["command"], f"the tester {reply['namespace']}")
    if board.tester:
        return SshTester(board.tester)
    raise LabError(f"{board.file_name} names no tester: set options.tester.host there, or set EVMPERF_TESTER")


def _group(output: bytes) -> tuple[str, str]:
    """The process group that a command said first, "" if none, and what came after it."""
    text = output.decode("utf-8", "replace")
    first, _, rest = text.partition("\n")
    return (first, rest) if first.isdigit() else ("", text)
