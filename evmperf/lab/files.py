"""Files of the board over its network, beside the console: what is long goes there, where an
SSHDriver of the board file says that it can, and over the console where not.
"""

from __future__ import annotations

import base64
import binascii
import subprocess
from typing import Any

from labgrid.driver import ExecutionError, SSHDriver
from labgrid.exceptions import NoDriverFoundError

from evmperf.lab.tester import as_root

_TRANSFER_S = 30.0
"""How long one file may take."""


class SshFiles:
    """Files of one boot of the board, over Labgrid's SSHDriver.

    The network of a board under test may be gone at any time: whatever fails is told by the answer
    and not tried again, so that a dead network costs one time-out a boot.
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._open = False
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
        said = self._run(f"base64 {path}")
        try:
            return None if said is None else base64.b64decode(said, validate=True)
        except binascii.Error as error:
            self._give_up(f"{path} came damaged ({error})")
            return None

    def put(self, path: str, data: bytes) -> bool:
        """Write a file; whether it is there. For what fits into a command line: 64 KiB."""
        text = base64.b64encode(data).decode()
        return self._run(f"echo {text} | base64 -d >{path}") is not None

    def close(self) -> None:
        """Give up the connection, which a board that is switched off leaves hanging."""
        if self._open:
            self._open = False
            self._driver.target.deactivate(self._driver)

    def _run(self, command: str) -> str | None:
        """What a command prints, as one text without line ends; None when it does not succeed."""
        if self.broken:
            return None
        try:
            if not self._open:
                self._driver.target.activate(self._driver)
                self._open = True
            lines, errors, status = self._driver.run(as_root(command), timeout=_TRANSFER_S)
        except subprocess.TimeoutExpired:
            self._give_up(f"no answer within {_TRANSFER_S:g} s")
        except (ExecutionError, OSError, UnicodeDecodeError) as error:
            self._give_up(str(error).split("\n", maxsplit=1)[0])
        except Exception as error:
            # Labgrid raises a bare Exception for a connection that does not come about.
            if type(error) is not Exception:
                raise
            self._give_up(str(error))
        else:
            if status == 0:
                return "".join(lines)
            self._give_up(" ".join(errors)[:200] or f"exit status {status}")
        return None

    def _give_up(self, why: str) -> None:
        self.broken = why
