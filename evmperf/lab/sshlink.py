"""A board over SSH: one that has no other way, whether it is still the same boot, and files of one that
has a console, too.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from labgrid.driver import SSHDriver
from labgrid.exceptions import NoDriverFoundError
from labgrid.util.proxy import proxymanager

from evmperf.benchmarks.tools import systemd_analyze
from evmperf.boards.console.marks import ObservedBoot
from evmperf.lab.tester import SshTester, host_key_options, host_key_trouble
from evmperf.measure.bench import ShellReply
from evmperf.model.errors import BoardError, BoardLost, EvmperfError, LabError

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
    """Connections to a board that Labgrid's SSHDriver describes."""

    def __init__(self, driver: Any) -> None:
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
                self.shell = SshShell(self._driver)
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
        if self.shell:
            self.shell.close()
            self.shell = None

    def _asked(self) -> str:
        assert self.shell
        return self.shell.run(_BOOT_ID, _ANSWER_S).text.strip()


class SshShell(SshTester):
    """evmperf's Shell on the board itself, as Labgrid's SSHDriver describes it: a connection that is gone is
    the board's failure.
    """

    def __init__(self, driver: Any) -> None:
        service = driver.networkservice
        self._address, self._port = service.address, service.port
        user, environment = driver.username or service.username, driver.target.env
        options = ["-x", "-o", "LogLevel=ERROR", "-p", str(service.port), "-l", user]
        options += ["-o", f"ConnectTimeout={max(round(driver.connection_timeout), 1)}"]
        if driver.keyfile:
            config = environment and environment.config
            options += ["-i", config.resolve_path(driver.keyfile) if config else driver.keyfile]
        address, _, interface = service.address.partition("%")
        if proxy := proxymanager.get_command(service, address, service.port, interface or None):
            options += ["-o", f"ProxyCommand={shlex.join(proxy)}"]
        super().__init__(
            service.address,
            [*options, *host_key_options(service.address, service.port)],
            f"the board {user}@{service.address}",
            program=environment.config.get_tool("ssh") if environment else "ssh",
            password=service.password if driver.password is None else driver.password,
        )

    def run(self, command: str, timeout_s: float) -> ShellReply:
        """Run a command; raises ToolError when it hangs, BoardError when the board is gone."""
        try:
            return super().run(command, timeout_s)
        except BoardLost:
            raise
        except LabError as error:
            trouble = host_key_trouble(str(error), self._address, self._port)
            raise BoardError(trouble or str(error)) from error


class SshFiles:
    """Files of one boot of a board beside its console: long ones go there where an SSHDriver can.

    The network of a board under test may be gone at any time: whatever fails is told by the answer
    and not tried again, so that a dead network costs one time-out a boot.
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._shell: SshShell | None = None
        self.broken = ""
        """Why the network carries no files, "" while it does."""

    @classmethod
    def of(cls, target: Any) -> SshFiles | None:
        """The way to the board of this target, None where its file has no SSHDriver."""
        try:
            return cls(target.get_driver(SSHDriver, activate=False))
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
            self._shell.close()
            self._shell = None

    def _run(self, command: str) -> str | None:
        """What a command prints; None when it does not succeed."""
        if self.broken:
            return None
        try:
            self._shell = self._shell or SshShell(self._driver)
            reply = self._shell.run(command, _TRANSFER_S)
        except EvmperfError as error:
            self.broken = str(error)
            return None
        if reply.status:
            self.broken = " ".join(reply.text.split())[:200] or f"exit status {reply.status}"
        return None if self.broken else reply.text
