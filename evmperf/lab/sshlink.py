"""A board that is reached over SSH alone: its shell, and whether it is still the same boot."""

import contextlib
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from labgrid.driver import ExecutionError

from evmperf.console.boot import Boot
from evmperf.lab.tester import CommandTester
from evmperf.measure.bench import Reply
from evmperf.model.errors import BoardError, BoardLost, EvmperfError, LabError
from evmperf.tools import systemd_analyze

_BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
_REBOOT = "(sleep 1; reboot) >/dev/null 2>&1 &"
_HOPELESS = re.compile(r"Permission denied|Could not resolve|identification has changed")
"""What ssh says that waiting does not mend."""
_ANSWER_S = 15.0
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
        self.note = ""
        """What is to be known of the last connection: that the board had rebooted by itself."""
        self.shell: SshShell | None = None

    @property
    def name(self) -> str:
        """The board as a person would type it."""
        return f"{self._driver.username or self._driver.networkservice.username}@{self._address}"

    @property
    def _address(self) -> str:
        return str(self._driver.networkservice.address)

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
                self._open()
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

    def told(self, boot: Boot, within_s: float) -> Boot:
        """The boot with what kernel and systemd say of it, once systemd has come to its end."""
        deadline = time.monotonic() + within_s
        try:
            assert self.shell
            reply = self.shell.run(systemd_analyze.COMMAND, _ANSWER_S)
            while systemd_analyze.UNFINISHED in reply.text and time.monotonic() < deadline:
                time.sleep(_RETRY_S)
                reply = self.shell.run(systemd_analyze.COMMAND, _ANSWER_S)
            return replace(boot, told=systemd_analyze.parts(reply.text))
        except EvmperfError as error:
            return replace(boot, error=error, phase="question how long it took")

    def close(self) -> None:
        """Give up the connection."""
        self.shell = None
        with contextlib.suppress(Exception):  # the far end may be gone
            self._target.deactivate(self._driver)

    def _open(self) -> None:
        self.close()
        try:
            self._target.activate(self._driver)
        except (ExecutionError, OSError, subprocess.SubprocessError) as error:
            raise BoardError(" ".join(str(error).split())[:300]) from error
        except Exception as error:
            if type(error) is not Exception:  # Labgrid's for a connection that does not come about
                raise
            cause = error.__cause__ or error
            said = b" ".join(getattr(cause, "stdout", None) or [str(error).encode()])
            raise BoardError(said.decode("utf-8", "replace").strip()[:300]) from error
        service = self._driver.networkservice
        self.shell = SshShell(
            [
                "ssh",
                "-x",
                *self._driver.ssh_prefix,
                "-o",
                "BatchMode=yes",
                "-p",
                str(service.port),
                "-l",
                self._driver.username or service.username,
                service.address,
            ],
            f"the board {self.name}",
            over_ssh=True,
        )

    def _asked(self) -> str:
        assert self.shell
        return self.shell.run(_BOOT_ID, _ANSWER_S).text.strip()


class SshShell(CommandTester):
    """evmperf's Shell on the board itself: a connection that is gone is the board's failure."""

    def run(self, command: str, timeout_s: float) -> Reply:
        """Run a command; raises ToolError when it hangs, BoardError when the board is gone."""
        try:
            return super().run(command, timeout_s)
        except BoardLost:
            raise
        except LabError as error:
            raise BoardError(str(error)) from error
