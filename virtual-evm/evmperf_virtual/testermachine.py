"""The machine beside the board as a QEMU of its own, which is reached over SSH as a real tester is.

Cables are pairs of sockets, one frame a datagram: no tap, no bridge, hence no root. Of the host's
network it sees nothing; QEMU forwards one port of loopback to its sshd, which lets in the owner of
the board's folder, with a key made for it.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from evmperf.boards.board import VIRTUAL_HOST
from evmperf.model.errors import LabError
from evmperf_virtual import steps
from evmperf_virtual.board import TesterInfo
from evmperf_virtual.console import ConsoleServer
from evmperf_virtual.image import EvmImage
from evmperf_virtual.machine import Machine, escaped
from evmperf_virtual.tester import NetDevices, nics_of

READY_TIMEOUT = 240.0
"""Seconds from its start within which its sshd must answer."""
_KEY_NAME = "opt/evmperf/tester"
"""Under this name of QEMU's fw_cfg the guest finds who may log in; without, it is a board."""
DISK = "tester"
"""Its disk among those of the image."""
_FRAME = 65536
_BANNER = b"SSH-"
_KEYGEN_S = 30


class TesterMachine:
    """Runs from `start` to `close`, whatever the board's power switch does. Raises LabError."""

    def __init__(self, image: EvmImage, board: Path, disk: Path, nics: int) -> None:
        assert image.tester_machine
        image = msgspec.structs.replace(image, arguments=image.tester_machine["arguments"])
        self._known_hosts = disk.with_suffix(".known_hosts")
        self._key = _key(board)
        self._cables = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(nics)]
        self._port = 0
        self._console = ConsoleServer(board / "tester.stamps")
        owner = ("-fw_cfg", f"name={_KEY_NAME},file={escaped(self._key.with_suffix('.pub'))}")
        log = board / "tester.log"
        self._machine = Machine(image, {DISK: disk}, log, self._console, self._own_devices, owner)

    async def start(self) -> None:
        """Start its QEMU; returns before it has booted. Raises LabError."""
        # Nothing tells us which port QEMU would take by itself.
        with socket.create_server((VIRTUAL_HOST, 0)) as probe:
            self._port = probe.getsockname()[1]
        await self._machine.start()

    @property
    def info(self) -> TesterInfo:
        """How others reach the tester."""
        options = [
            *("-F", "none", "-p", str(self._port), "-i", str(self._key)),
            *("-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=accept-new"),
            *("-o", f"UserKnownHostsFile={self._known_hosts}", "-o", "HostKeyAlias=tester"),
            *("-o", "LogLevel=ERROR"),
        ]
        nics = nics_of(f"eth{number}" for number in range(1, len(self._cables) + 1))
        host = f"root@{VIRTUAL_HOST}"
        return TesterInfo("", ["ssh", *options, host], nics, host, options, self._port)

    @contextlib.contextmanager
    def devices(self) -> Iterator[NetDevices]:
        """The board's ends of the cables, without what was sent while it had no power."""
        ends = [board for board, _ in self._cables]
        for end in ends:
            with contextlib.suppress(BlockingIOError):
                while end.recv(_FRAME, socket.MSG_DONTWAIT):
                    pass
        yield NetDevices(_definitions(ends), [end.fileno() for end in ends])

    @contextlib.contextmanager
    def _own_devices(self) -> Iterator[NetDevices]:
        ends = [tester for _, tester in self._cables]
        # Nothing but the forwarded port: not even the host's name server.
        way_in = f"user,id=net0,restrict=on,hostfwd=tcp:{VIRTUAL_HOST}:{self._port}-:22"
        definitions = [way_in, *_definitions(ends, first=1)]
        yield NetDevices(definitions, [end.fileno() for end in ends])

    async def ready(self) -> None:
        """Wait for its sshd, behind QEMU's port; raises LabError after READY_TIMEOUT."""
        deadline = time.monotonic() + READY_TIMEOUT
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, EOFError):
                async with asyncio.timeout(5):
                    reader, writer = await asyncio.open_connection(VIRTUAL_HOST, self._port)
                    with contextlib.closing(writer):
                        if await reader.readexactly(len(_BANNER)) == _BANNER:
                            return
            await asyncio.sleep(0.5)
        raise LabError(
            f"the virtual EVM's tester does not answer over SSH on port {self._port} after "
            f"{READY_TIMEOUT:g} s: stop it with `evmperf virtual stop` and start it again"
        )

    async def close(self) -> None:
        """End its QEMU."""
        await self._machine.stop("the bench stopped")
        await self._console.close()
        for pair in self._cables:
            for end in pair:
                end.close()


def _key(board: Path) -> Path:
    """The key of those who may log in, made once for a board."""
    key = board / "tester-key"
    if not key.exists():
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "evmperf", "-f", str(key)]
        steps.output(command, _KEYGEN_S)
    return key


def _definitions(ends: list[socket.socket], first: int = 0) -> list[str]:
    return [
        f"dgram,id=net{number},local.type=fd,local.str={end.fileno()}"
        for number, end in enumerate(ends, first)
    ]
