"""The machine beside the board: a network namespace with one tap for each of the board's NICs.

QEMU runs inside and opens the taps: the tester's interface is the tap itself. No bridge, no veth, nothing in
the root namespace and no way out. The taps are persistent and QEMU holds the only open end: without power the
tester sees a cable without carrier, and no packet waits for the next boot.
"""

import contextlib
import hashlib
import logging
import os
import shutil
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evmperf.model.errors import LabError
from evmperf_virtual import steps
from evmperf_virtual.board import Nic, TesterInfo

_NAMESPACES = Path("/run/netns")
_FIRST_SUBNET = 100
_TAP_TIMEOUT = 3.0
"""Seconds within which the QEMU before must have let go of its taps."""
_TAP_RETRY = 0.01
_TIMEOUT = 10

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NetDevices:
    """What QEMU gets: netdev definitions, the descriptors that they name, and the command to run it with."""

    definitions: list[str]
    descriptors: Sequence[int] = ()
    prefix: Sequence[str] = ()


def missing() -> str:
    """Why this machine cannot have testers, in a few words; empty if it can."""
    if os.geteuid() != 0:
        return "not root: a network namespace and taps need it"
    if not Path("/dev/net/tun").exists():
        return "no /dev/net/tun on this machine"
    if shutil.which("ip") is None:
        return "no `ip` on this machine: install iproute2"
    return ""


def nics_of(interfaces: Iterable[str]) -> list[Nic]:
    """A tester's ends of the cables; NIC n is 192.168.(100+n).1, and its board .2."""
    nets = ((index, name, f"192.168.{_FIRST_SUBNET + index}") for index, name in enumerate(interfaces))
    return [Nic(index, name, f"{net}.1", f"{net}.2", 24) for index, name, net in nets]


class TesterSpace:
    """A namespace with taps until `clean_up`; `programs` goes to the front of its PATH. Raises LabError."""

    def __init__(self, board: Path, nics: int, programs: str = "") -> None:
        self.namespace = namespace_of(board)
        self._programs = programs
        self.nics = nics_of([f"evm{number}" for number in range(nics)])
        _ip("netns", "add", self.namespace)
        lines = ["link set lo up"]
        for nic in self.nics:
            lines += [
                f"tuntap add dev {nic.interface} mode tap vnet_hdr",
                f"addr add {nic.address}/{nic.prefix} dev {nic.interface}",
                f"link set {nic.interface} up",
            ]
        _ip("-n", self.namespace, "-batch", "-", stdin="\n".join(lines) + "\n")

    @property
    def info(self) -> TesterInfo:
        """How others reach the tester."""
        command = ["ip", "netns", "exec", self.namespace]
        if self._programs:
            command += ["env", f"PATH={self._programs}:{os.environ.get('PATH', os.defpath)}"]
        return TesterInfo(self.namespace, command, self.nics)

    @contextlib.contextmanager
    def devices(self) -> Iterator[NetDevices]:
        """The taps, once the QEMU before has let go of them; raises LabError.

        A killed one may hold them a little longer, until io_uring's work is cancelled.
        """
        deadline = time.monotonic() + _TAP_TIMEOUT
        while "LOWER_UP" in _ip("-n", self.namespace, "link", "show", "type", "tun"):
            if time.monotonic() > deadline:
                raise LabError(f"the taps in {self.namespace} are in use, though the board is off")
            time.sleep(_TAP_RETRY)
        words = "script=no,downscript=no"
        definitions = [f"tap,id=net{nic.index},ifname={nic.interface},{words}" for nic in self.nics]
        yield NetDevices(definitions, prefix=["ip", "netns", "exec", self.namespace])


@contextlib.contextmanager
def no_tester(nics: int) -> Iterator[NetDevices]:
    """NICs that are connected to nothing but QEMU's own closed network."""
    yield NetDevices([f"user,id=net{index},restrict=on" for index in range(nics)])


def clean_up(board: Path) -> None:
    """Remove a board's namespace and end the processes in it, if it is there. Raises LabError."""
    namespace = namespace_of(board)
    if missing() or not (_NAMESPACES / namespace).exists():
        return
    # A server left running would keep the namespace alive without a name.
    for pid in _ip("netns", "pids", namespace).split():
        if int(pid) != os.getpid():
            _log.info("ending process %s in %s", pid, namespace)
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    _ip("netns", "del", namespace)


def namespace_of(board: Path) -> str:
    """The name of the namespace of a board in this folder: another folder may have one of the same name."""
    return f"evm-{board.name}-{hashlib.sha256(os.fsencode(board.resolve())).hexdigest()[:6]}"


def _ip(*arguments: str, stdin: str = "") -> str:
    return steps.output(["ip", *arguments], _TIMEOUT, stdin=stdin)
