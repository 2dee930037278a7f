"""A board over SSH: one that has no other way, whether it is still the same boot, and files of one that
has a console, too.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from labgrid.driver import ExecutionError, SSHDriver
from labgrid.exceptions import NoDriverFoundError

from evmperf.benchmarks.tools import systemd_analyze
from evmperf.boards.console.marks import ObservedBoot
from evmperf.lab.tester import CommandTester, host_key_options, host_key_trouble
from evmperf.measure.bench import ShellReply
from evmperf.model.errors import BoardError, BoardLost, EvmperfError, LabError, one_line

_BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
_REBOOT = "(sleep 1; reboot) >/dev/null 2>&1 &"
_HOPELESS = re.compile(r"Permission denied|Could not resolve|another host key")
"""What ssh says that waiting does not mend."""
_ANSWER_S = 15.0
_TRANSFER_S = 30.0
"""How long one file may take."""
_RETRY_S = 1.0
_CONNECT_S = 5.0
"""Labgrid's own patience with one connection: `connect` has a longer one for them all."""


class BoardAway(BoardError):
    """The board was given its time to come back; another attempt is no use."""

    permanent = True


class SshLink:
    """Connections to a board over Labgrid's SSHDriver."""

    def __init__(self, target: Any, driver: Any) -> None:
        self._target = target
        self._driver = driver
        driver.connection_timeout = min(driver.connection_timeout, _CONNECT_S)
        self._boot_id = ""
        service = driver.networkservice
        self.name = f"{driver.username or service.username}@{service.address}"
        """The board as a person would type it."""
        self.note = ""
        """What is to be known of the last connection: that the board had rebooted by itself."""
        self.shell: SshShell | None = None

    def is_up(self) -> bool:
        """Whether the last connection still carries commands of the same boot."""
        if not self.shell:
            return False
        with contextlib.suppress(BoardError):
            return self._asked() == self._boot_id
        return False

    def reboot(self) -> bool:
        """Have the board reboot, if it still takes a command; whether it did."""
        with contextlib.suppress(BoardError):
            return self.shell is not None and self.shell.run(_REBOOT, _ANSWER_S).status == 0
        return False

    def connect(self, within_s: float, *, reset: Callable[[], bool | None] | None = None) -> None:
        """Connect anew, after a `reset`, which may say that it failed; raises BoardError."""
        before, self.note = self._boot_id, ""
        deadline = time.monotonic() + within_s
        asked = False
        while True:
            try:
                self.close()
                self.shell = _connected(self._target, self._driver)
                now = self._asked()
                if not (reset and before and now == before):
                    break
                why = "it has not rebooted"
            except BoardError as error:
                why = str(error)
            if reset and before and not asked:
                asked = reset() is not False
            if time.monotonic() > deadline or _HOPELESS.search(why):
                raise BoardAway(
                    f"{self.name} did not come back over SSH within {within_s:g} s ({why}): check "
                    f"its power, its cable, its address, and that this key or password logs in"
                )
            time.sleep(_RETRY_S)
        self._boot_id = now
        if before and now != before and not reset:
            self.note = f"{self.name} rebooted by itself: its boot id changed"

    def timed(self, boot: ObservedBoot, within_s: float) -> ObservedBoot:
        """The boot with what kernel and systemd say of it, once systemd has come to its end."""
        deadline = time.monotonic() + within_s
        try:
            assert self.shell
            reply = self.shell.run(systemd_analyze.COMMAND, _ANSWER_S)
            while systemd_analyze.UNFINISHED in reply.text and time.monotonic() < deadline:
                time.sleep(_RETRY_S)
                reply = self.shell.run(systemd_analyze.COMMAND, _ANSWER_S)
            return replace(boot, parts=systemd_analyze.parts(reply.text))
        except EvmperfError as error:
            return replace(boot, error=error, phase="question how long it took")

    def close(self) -> None:
        """Give up the connection."""
        self.shell = None
        with contextlib.suppress(Exception):  # the far end may be gone
            self._target.deactivate(self._driver)

    def _asked(self) -> str:
        assert self.shell
        return self.shell.run(_BOOT_ID, _ANSWER_S).text.strip()


class SshShell(CommandTester):
    """evmperf's Shell on the board itself: a connection that is gone is the board's failure."""

    def run(self, command: str, timeout_s: float) -> ShellReply:
        """Run a command; raises ToolError when it hangs, BoardError when the board is gone."""
        try:
            return super().run(command, timeout_s)
        except BoardLost:
            raise
        except LabError as error:
            raise BoardError(str(error)) from error


def _connected(target: Any, driver: Any) -> SshShell:
    """A shell over Labgrid's SSHDriver, which it makes connect; raises BoardError."""
    service, start = driver.networkservice, driver._start_own_master

    def start_heeding_keys() -> object:
        # Of an option given twice ssh takes the first; Labgrid itself gives the one that checks nothing.
        driver.ssh_prefix += host_key_options(service.address, service.port)
        return start()

    try:
        driver._start_own_master = start_heeding_keys
        target.activate(driver)
    except (ExecutionError, OSError, subprocess.SubprocessError) as error:
        raise BoardError(one_line(error, 300)) from error
    except Exception as error:
        if type(error) is not Exception:  # Labgrid's for a connection that does not come about
            raise
        cause = error.__cause__ or error
        output = b" ".join(getattr(cause, "stdout", None) or [str(error).encode()])
        text = output.decode("utf-8", "replace").strip()
        trouble = host_key_trouble(text, service.address, service.port)
        raise BoardError(trouble or text[:300]) from error
    finally:
        driver._start_own_master = start
    user = driver.username or service.username
    words = ["-o", "BatchMode=yes", "-p", str(service.port), "-l", user]
    command = ["ssh", "-x", *driver.ssh_prefix, *words, service.address]
    return SshShell(command, f"the board {user}@{service.address}", over_ssh=True)


class SshFiles:
    """Files of one boot of a board beside its console: long ones go there where an SSHDriver can.

    The network of a board under test may be gone at any time: whatever fails is told by the answer
    and not tried again, so that a dead network costs one time-out a boot.
    """

    def __init__(self, target: Any, driver: Any) -> None:
        self._target = target
        self._driver = driver
        self._shell: SshShell | None = None
        self.broken = ""
        """Why the network carries no files, "" while it does."""

    @classmethod
    def of(cls, target: Any) -> SshFiles | None:
        """The way to the board of this target, None where its file has no SSHDriver."""
        try:
            return cls(target, target.get_driver(SSHDriver, activate=False))
        except NoDriverFoundError:
            return None

    def get(self, path: str) -> bytes | None:
        """A file's bytes, None where they do not come."""
        output = self._run(f"base64 {path}")
        try:
            return None if output is None else base64.b64decode("".join(output.split()), validate=True)
        except binascii.Error as error:
            self.broken = f"{path} came damaged ({error})"
            return None

    def put(self, path: str, data: bytes) -> bool:
        """Write a file; whether it is there. For what fits into a command line: 64 KiB."""
        text = base64.b64encode(data).decode()
        return self._run(f"echo {text} | base64 -d >{path}") is not None

    def close(self) -> None:
        """Give up the connection, which a board that is switched off leaves hanging."""
        if self._shell:
            self._shell = None
            self._target.deactivate(self._driver)

    def _run(self, command: str) -> str | None:
        """What a command prints; None when it does not succeed."""
        if self.broken:
            return None
        try:
            self._shell = self._shell or _connected(self._target, self._driver)
            reply = self._shell.run(command, _TRANSFER_S)
        except EvmperfError as error:
            self.broken = str(error)
            return None
        if reply.status:
            self.broken = " ".join(reply.text.split())[:200] or f"exit status {reply.status}"
        return None if self.broken else reply.text
