"""One virtual board's QEMU: a fresh process for every power-on, gone when the power is off."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from evmperf.measure.hostload import slowness
from evmperf.model.errors import LabError
from evmperf_virtual import disks
from evmperf_virtual.board import Exit, now
from evmperf_virtual.console import ConsoleServer
from evmperf_virtual.image import EvmImage
from evmperf_virtual.tester import NetDevices

START_TIMEOUT = 10.0
"""Seconds within which a QEMU that does not die must run its guest."""
_RELEASE_TIMEOUT = 5.0
_SOCKET_BUFFER = 4 << 20
_SO_SNDBUFFORCE = 32
_QMP_LIMIT = 1 << 20

_log = logging.getLogger(__name__)


def escaped(path: Path) -> str:
    """A file's name within one of QEMU's options, its commas doubled."""
    return str(path).replace(",", ",,")


def nic_count(image: EvmImage) -> int:
    """How many NICs the image's arguments ask a network for."""
    indices = re.findall(r"\{net\[(\d+)\]\}", " ".join(image.arguments))
    return max((int(index) + 1 for index in indices), default=0)


@dataclass
class Machine:
    """Starts and kills QEMU, one call at a time, with `options` as further words."""

    image: EvmImage
    disks: dict[str, Path]
    log: Path
    console: ConsoleServer
    devices: Callable[[], AbstractContextManager[NetDevices]]
    options: Sequence[str] = ()
    last_exit: Exit | None = None
    _run: _Run | None = None

    @property
    def pid(self) -> int | None:
        """The process id of a running QEMU."""
        return self._run.process.pid if self._run and self._run.process.returncode is None else None

    async def start(self) -> None:
        """Start a fresh QEMU and return when its guest runs; raises LabError with QEMU's own reason."""
        assert self._run is None
        run = await self._spawn()
        self._run = run
        within = START_TIMEOUT * slowness()
        try:
            async with asyncio.timeout(within):
                if await run.running():
                    _log.info("QEMU runs as pid %d", run.process.pid)
                    return
                await run.process.wait()  # it closes its control socket by ending
        except TimeoutError:
            await self.stop(f"not running {within:.0f} s after its start")
            raise LabError(f"QEMU has not started its guest within {within:.0f} s; see {self.log}") from None
        except BaseException:
            await self.stop("the bench stopped while QEMU started")
            raise
        await self.stop("")
        reason = self.last_exit.detail or self.last_exit.reason if self.last_exit else ""
        raise LabError(f"QEMU ended as soon as it was started: {reason}; see {self.log}")

    async def stop(self, reason: str = "power switched off") -> None:
        """Kill QEMU and return when it is gone; flushed data is safe in the host's page cache."""
        run = self._run
        if run is None:
            return
        if run.process.returncode is None:
            run.killed_because = reason
            with contextlib.suppress(ProcessLookupError):
                run.process.kill()
        await run.finished
        self._run = None
        await self._released()

    async def _released(self) -> None:
        """Wait for what the killed QEMU had under way: the next one must find quiet disks."""
        deadline = asyncio.get_running_loop().time() + _RELEASE_TIMEOUT * slowness()
        for disk in self.disks.values():
            while disks.in_use(disk):
                if asyncio.get_running_loop().time() > deadline:
                    _log.error("%s is still in use, though QEMU is gone", disk)
                    return
                await asyncio.sleep(0.005)

    async def _spawn(self) -> _Run:
        # QEMU writes a UART byte by byte and stalls the guest while the socket is full, and each
        # byte costs the kernel a buffer of some hundred bytes: so a large one.
        line, line_qemu = socket.socketpair()
        control, control_qemu = socket.socketpair()
        with contextlib.suppress(OSError):
            line_qemu.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _SOCKET_BUFFER)
        line.setblocking(False)
        control.setblocking(False)
        try:
            with self.devices() as net, self.log.open("wb") as log:
                command = self._command(net, line_qemu.fileno(), control_qemu.fileno())
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.image.directory,
                    pass_fds=[line_qemu.fileno(), control_qemu.fileno(), *net.descriptors],
                    start_new_session=True,
                )
        except (OSError, LabError) as error:
            line.close()
            control.close()
            raise LabError(f"QEMU cannot be started: {error}") from None
        finally:
            line_qemu.close()
            control_qemu.close()
        await self.console.attach(line)
        run = _Run(process, *await asyncio.open_connection(sock=control, limit=_QMP_LIMIT))
        run.finished = asyncio.ensure_future(self._watch(run))
        return run

    def _command(self, net: NetDevices, line: int, control: int) -> list[str]:
        files = {name: escaped(path) for name, path in self.disks.items()}
        values = {"disk": files, "net": net.definitions, "dir": str(self.image.directory)}
        try:
            arguments = [argument.format(**values) for argument in self.image.arguments]
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise LabError(
                f"an argument in {self.image.directory / 'image.json'} cannot be filled in: {error!r}"
            ) from None
        return [
            *("setpriv", "--pdeathsig", "KILL", "--"),  # QEMU ends with the bench, however that ends
            *net.prefix,
            self.image.qemu,
            *arguments,
            *self.options,
            *("-display", "none", "-monitor", "none"),
            *("-chardev", f"socket,id=evmperf-console,fd={line}"),
            *("-serial", "chardev:evmperf-console"),
            *("-chardev", f"socket,id=evmperf-qmp,fd={control}"),
            *("-mon", "chardev=evmperf-qmp,mode=control"),
        ]

    async def _watch(self, run: _Run) -> None:
        """Wait for the end of a QEMU, whoever caused it, and record why it ended."""
        status = await run.process.wait()
        await self.console.detach()
        detail = _complaint(self.log)
        ended = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        # QEMU says so when a signal, and not the guest, made it end itself.
        by_guest = status == 0 and "terminating on signal" not in detail
        reason = run.killed_because or ("the guest powered itself off" if by_guest else ended)
        self.last_exit = Exit(now(), reason, detail)
        _log.log(
            logging.INFO if run.killed_because else logging.WARNING,
            "QEMU ended: %s%s",
            reason,
            f" ({detail})" if detail else "",
        )
        run.writer.close()


@dataclass
class _Run:
    """One QEMU process and its control socket (QMP)."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    killed_because: str = ""
    finished: asyncio.Future[None] = field(init=False)

    async def running(self) -> bool:
        """Wait until the guest runs; False if the control socket ends first."""
        self.writer.write(b'{"execute":"qmp_capabilities"}\n{"execute":"query-status"}\n')
        # QEMU answers these from its main loop, which it enters after all devices are made.
        with contextlib.suppress(ConnectionError):
            while line := await self.reader.readline():
                answer = json.loads(line).get("return")
                if isinstance(answer, dict) and answer.get("running"):
                    return True
        return False


def _complaint(log: Path) -> str:
    """QEMU's first line that is not a mere warning, without the path of its program."""
    with log.open(errors="replace") as file:
        lines = [line.strip() for line in file.read(65536).splitlines() if line.strip()]
    errors = [line for line in lines if "warning:" not in line]
    first = (errors or lines or [""])[0]
    return re.sub(r"^\S*/(qemu-system-\w+:)", r"\1", first)
