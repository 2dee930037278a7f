"""Shells over a console: a driver that is fast on a serial line and says why a login failed, and
evmperf's Shell over it and over U-Boot's.
"""

import base64
import re
import shlex
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import attr
from attr.validators import instance_of, optional
from labgrid.driver import ExecutionError, ShellDriver, UBootDriver
from labgrid.factory import target_factory
from labgrid.util import gen_marker, re_vt100
from pexpect import TIMEOUT

from evmperf.boards import prompts
from evmperf.lab.console import ConsoleLost
from evmperf.lab.login import LoginStopped, Prompt, log_in
from evmperf.lab.sshlink import SshFiles
from evmperf.measure.bench import Files, Shell, ShellReply
from evmperf.model import limits
from evmperf.model.concealing import learn
from evmperf.model.errors import BoardError, Interrupted, RefusedOutput, ToolError, one_line

_PASSWORD = r"[\r\n][^\r\n]{0,40}[Pp]assword[^\r\n:]{0,40}: ?(?=\Z)"
_UBOOT_INTERRUPT_S = 5
_CHUNK = 700
"""Characters of a file in one command: busybox's shell takes a line of 1 KiB."""
_GET_S = 600
_ANSWER_LINES, _TALK_LINES = 3, 8
"""Of an answer, and of all, that are kept for a report."""
_PROMPT_S = 5.0
"""Seconds within which a prompt must follow the end of a command or a login."""


class LoginFailed(BoardError):
    """The dialogue of logging in went wrong; another power cycle would not change that."""

    permanent = True


class CommandHung(BoardError):
    """A command did not end in its time and could not be interrupted."""


class CommandTimeout(TIMEOUT):  # pexpect's, as Labgrid's drivers raise it
    """A command that hung or printed too much and was interrupted; the shell is usable."""


@target_factory.reg_driver
@attr.s(eq=False)
class EvmShellDriver(ShellDriver):  # type: ignore[misc]
    """Labgrid's ShellDriver with a dialogue of one round trip and a scan that stays linear.

    Labgrid's own looks through everything received again for each piece that arrives, asks for a
    prompt before every command, and waits out its whole time when a password is wrong.
    """

    prompt: str = attr.ib(default=prompts.SHELL_PROMPT, validator=instance_of(str))
    login_prompt: str = attr.ib(default=prompts.LOGIN_PROMPT, validator=instance_of(str))
    username: str = attr.ib(default=prompts.USERNAME, validator=instance_of(str))
    password: str | None = attr.ib(default=None, validator=optional(instance_of(str)), repr=False)

    before_login: Callable[[], None] | None = attr.ib(default=None, init=False)
    """Called before anything is typed."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        learn({"password": self.password, "username": self.username})

    def execute(self, command: str, timeout_s: float) -> tuple[int, str]:
        """Run a command; exit status and output (stdout and stderr as the terminal shows them).

        Raises CommandTimeout (interrupted, shell usable), CommandHung (shell unusable), and what
        the console raises.
        """
        marker = gen_marker().encode()
        hidden = f"'{marker[:4].decode()}''{marker[4:].decode()}'"
        self.console.take_pending()
        self.console.sendline(f"MARKER={hidden} run {shlex.quote(command)}")
        deadline = time.monotonic() + timeout_s
        try:
            return self._collect(marker, deadline)
        except (TIMEOUT, OverflowError, ConsoleLost) as error:
            self._interrupt()
            if isinstance(error, ConsoleLost):
                raise
            much = f"printed more than {limits.mib(limits.REPLY_BYTES)} (console.log)"
            why = f"did not end within {timeout_s:g} s" if isinstance(error, TIMEOUT) else much
            raise CommandTimeout(f"`{command[:80]}` {why}") from None

    def _run(
        self, cmd: str, *, timeout: float = 30.0, codec: str = "utf-8", decodeerrors: str = "strict"
    ) -> tuple[list[str], list[str], int]:
        status, output = self.execute(cmd, timeout)
        return output.splitlines(), [], status

    def put(self, localfile: str, remotefile: str) -> None:
        """Copy a file to the board, as base64 over the console (8 kB/s at 115200 baud); raises Labgrid's
        ExecutionError where the board cannot write it.
        """
        self.put_bytes(Path(localfile).read_bytes(), remotefile)

    def put_bytes(self, buf: bytes, remotefile: str) -> None:
        """The same with the file's content."""
        text, part = base64.b64encode(buf).decode(), f"{remotefile}.evmperf-part"
        self.run_check(f": >{shlex.quote(part)}")
        for at in range(0, len(text), _CHUNK):
            self.run_check(f"printf %s {text[at : at + _CHUNK]} >>{shlex.quote(part)}")
        whole = f"base64 -d <{shlex.quote(part)} >{shlex.quote(remotefile)}"
        self.run_check(f"{whole} && rm {shlex.quote(part)}")

    def get(self, remotefile: str, localfile: str) -> None:
        """Copy a file of the board to this machine; raises ExecutionError where the board cannot read it."""
        Path(localfile).write_bytes(self.get_bytes(remotefile))

    def get_bytes(self, remotefile: str) -> bytes:
        """A file's content."""
        lines = self.run_check(f"base64 {shlex.quote(remotefile)}", timeout=_GET_S)
        return base64.b64decode("".join(lines))

    def _collect(self, marker: bytes, deadline: float) -> tuple[int, str]:
        data = bytearray()
        begin = -1
        searched = 0
        end = re.compile(re.escape(marker) + rb" (\d+)\r?\n")
        while True:
            data += self.console.await_data(max(deadline - time.monotonic(), 0.0))
            if begin < 0:
                position = data.find(marker, searched)
                if position >= 0:
                    begin = searched = position + len(marker)
            match = end.search(data, searched) if begin >= 0 else None
            if match:
                break
            if len(data) > limits.REPLY_BYTES:
                raise OverflowError
            # The end may have arrived in part: look again from shortly before the last byte.
            searched = max(begin, searched, len(data) - len(marker) - 16)
        seen, deadline = bytes(data[match.end() :]), time.monotonic() + _PROMPT_S
        while not re.search(self.prompt.encode(), seen):
            seen += self.console.await_data(max(deadline - time.monotonic(), 0.0))
        text = bytes(data[begin : match.start()]).decode("utf-8", "replace")
        return int(match.group(1)), re_vt100.sub("", text).replace("\r\n", "\n")

    def _interrupt(self) -> None:
        """Ctrl-C, and Ctrl-\\ for what ignores that; then ask for a sign of life."""
        self._status = 0
        for key in (b"\x03", b"\x03", b"\x1c"):
            sign = gen_marker()
            try:
                self.console.write(key)
                self.console.sendline(f"echo '{sign[:4]}''{sign[4:]}'")
                self.console.expect(rf"{sign}\s+{self.prompt}", timeout=_PROMPT_S)
            except TIMEOUT:
                continue
            self._status = 1
            return
        raise CommandHung("the shell does not return after Ctrl-C: the board must be reset")

    def _await_login(self) -> None:
        """Log in, through sudo as another user than root; raises LoginFailed that names what did not fit."""
        if self.before_login:
            self.before_login()
        deadline = time.monotonic() + self.login_timeout
        # What only looks like a prompt ends in text: "Last login: Mon", "password: none".
        patterns: dict[Prompt, object] = {
            "root": self.prompt,
            "login": self.login_prompt,
            "password": _PASSWORD,
            "refusal": "Login incorrect",
            "silence": TIMEOUT,
        }
        if self.username != prompts.USERNAME:
            patterns["user"] = prompts.USER_PROMPT
        is_begun = False

        def ask(line: str | None, secret: bool) -> Prompt:
            nonlocal is_begun
            if line is not None:
                (self.console.send_secret if secret else self.console.sendline)(line)
                is_begun = is_begun or line != ""
            while (left := deadline - time.monotonic()) > 0:
                within_s = min(left, float(self.await_login_timeout))
                index, _, _, _ = self.console.expect(list(patterns.values()), timeout=within_s)
                prompt: Prompt = list(patterns)[index]
                if prompt != "password" or is_begun:
                    return prompt
            return "end"

        try:
            log_in(ask, self.username, self.password)
        except LoginStopped as stop:
            raise LoginFailed(self._login_failure(stop)) from None
        self._status = 1

    def _login_failure(self, stop: LoginStopped) -> str:
        if stop.prompt == "password" and self.password is None:
            return (
                f"the board asks for a password of user {self.username}: "
                f"set `password` of EvmShellDriver in the board file"
            )
        if stop.prompt in ("password", "refusal"):
            return (
                f"the board refused the login of user {self.username}: check `username` and "
                f"`password` of EvmShellDriver in the board file"
            )
        if stop.prompt == "user":
            return (
                f"user {self.username} did not become root by `{prompts.SUDO}`: allow it in the "
                f"board's sudoers, set `password` of EvmShellDriver, or `username: root`"
            )
        shown = " | ".join(line for line in self.console.tail(3) if line.strip())
        if not stop.names and self.console.silent_s >= self.login_timeout:
            return (
                f"the board does not answer: no output in {self.login_timeout} s, the last {shown!r}: check "
                f"its power and the console's cable"
            )
        if not stop.names:
            return (
                f"no login prompt like {self.login_prompt!r} appeared in {self.login_timeout} s; the "
                f"console shows {shown!r}: set `login_prompt` of EvmShellDriver in the board file"
            )
        return (
            f"after the login as {self.username} no prompt like {self.prompt!r} came; the console "
            f"shows {shown!r}: set `prompt` of EvmShellDriver in the board file"
        )

    def _inject_run(self) -> None:
        """Define `run` on the board, and make the terminal fit for a program."""
        self._status = 0  # one that is not set up is logged in to again
        # Kernel messages go to the log only: on the console they cut tools' output in two.
        for line in (
            "stty -echoctl cols 500 2>/dev/null; dmesg -n 1; "
            "bind 'set enable-bracketed-paste off' 2>/dev/null; PS2=; HISTFILE=",
            """run() { echo -n "$MARKER"; sh -c "$@"; echo "$MARKER $?"; }""",
        ):
            sign = gen_marker()
            self.console.sendline(f"{line}; echo '{sign[:4]}''{sign[4:]}'")
            self.console.expect(rf"{sign}\s+{self.prompt}", timeout=_PROMPT_S)
        self._status = 1


@target_factory.reg_driver
@attr.s(eq=False)
class EvmUBootDriver(UBootDriver):  # type: ignore[misc]
    """Labgrid's UBootDriver with the prompts of TI's U-Boot."""

    prompt: str = attr.ib(default=prompts.UBOOT_PROMPT, validator=instance_of(str))
    autoboot: str = attr.ib(default=prompts.AUTOBOOT, validator=instance_of(str))


Watched = Callable[[str], AbstractContextManager[None]]
"""Within it a command of that name runs; raises BoardError where the board goes off."""


class _WatchedShell:
    """evmperf's Shell over a driver of Labgrid's: `check` is asked before each command, which may take
    `slowness` times as long as it says, and ends where the board goes off.
    """

    def __init__(
        self,
        driver: Any,
        check: Callable[[], None],
        slowness: Callable[[], float],
        watched: Watched,
        files: SshFiles | None = None,
    ) -> None:
        self.files = files
        self._driver, self._check, self._slowness, self._watched = driver, check, slowness, watched

    @contextmanager
    def _typed(self, command: str, timeout_s: float) -> Iterator[float]:
        """Within it the command runs, for so many seconds at most."""
        self._check()
        with self._watched(f"`{command[:80]}`"):
            yield round(timeout_s * self._slowness(), 1)


class LinuxShell(_WatchedShell):
    """A board's Linux over EvmShellDriver."""

    def run(self, command: str, timeout_s: float) -> ShellReply:
        """Run a command in the board's Linux."""
        try:
            with self._typed(command, timeout_s) as limit_s:
                status, text = self._driver.execute(command, limit_s)
        except CommandTimeout as error:
            raise ToolError(f"{error}: it was interrupted") from None
        except ConsoleLost as error:
            raise Interrupted(str(error)) from error
        except TIMEOUT as error:
            raise BoardError("the board stopped answering on the console") from error
        return ShellReply(status, text)


class PlainShell(_WatchedShell):
    """A board's Linux over Labgrid's ShellDriver, where the console is a driver's own."""

    def run(self, command: str, timeout_s: float) -> ShellReply:
        """Run a command in the board's Linux."""
        try:
            with self._typed(command, timeout_s) as limit_s:
                lines, _, status = self._driver.run(command, timeout=limit_s)
        except TIMEOUT as error:
            raise BoardError(f"`{command[:80]}` did not end within {timeout_s:g} s on the console") from error
        return ShellReply(status, "\n".join(lines))


class UbootShell(_WatchedShell):
    """U-Boot's prompt over Labgrid's UBootDriver."""

    def run(self, command: str, timeout_s: float) -> ShellReply:
        """Run a command at U-Boot's prompt."""
        limit_s = timeout_s
        try:
            with self._typed(command, timeout_s) as limit_s:
                lines, _, status = self._driver.run(command, timeout=limit_s)
        except TIMEOUT:
            self._interrupt()
            raise ToolError(
                f"`{command[:80]}` did not end within {limit_s:g} s in U-Boot: it was interrupted"
            ) from None
        except ConsoleLost as error:
            self._interrupt()
            raise Interrupted(str(error)) from error
        except (ValueError, UnicodeDecodeError) as error:
            raise RefusedOutput(f"U-Boot's answer to `{command[:80]}` is garbled") from error
        return ShellReply(status, "\n".join(lines))

    def _interrupt(self) -> None:
        console = self._driver.console
        try:
            console.write(b"\x03")
            console.expect(self._driver.prompt, timeout=_UBOOT_INTERRUPT_S)
        except TIMEOUT:
            raise BoardError("U-Boot does not return after Ctrl-C: it must be reset") from None


class CommandShell:
    """A board's shell for a lab's own tests: evmperf's `run`, and Labgrid's `run_check`."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self.talk = deque[str](maxlen=_TALK_LINES)
        """The last commands and the ends of their answers, a line each, for who reads why a test failed."""

    @property
    def files(self) -> Files | None:
        """As the shell itself has it."""
        return self._shell.files

    def run(self, command: str, timeout_s: float = 30.0, *, timeout: float | None = None) -> ShellReply:
        """Run a command; its output and exit status, also as Labgrid's lines, error lines and status.

        `timeout` is the deadline in seconds as Labgrid's tests call it.
        """
        self.talk.append(f"$ {one_line(command)}")
        reply = self._shell.run(command, timeout_s if timeout is None else timeout)
        self.talk += reply.text.splitlines()[-_ANSWER_LINES:]
        if reply.status:
            self.talk.append(f"(exit status {reply.status})")
        return reply

    def run_check(self, command: str, timeout: float = 30.0) -> list[str]:
        """The lines that a command prints; raises Labgrid's ExecutionError unless it ends with 0."""
        reply = self.run(command, timeout)
        lines = reply.text.splitlines()
        if reply.status:
            raise ExecutionError(f"`{command[:80]}` ended with {reply.status}", lines, [])
        return lines
