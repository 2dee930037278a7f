"""One virtual board's QEMU: a fresh process for every power-on, gone when the power is off."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

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
_LOG_LIMIT = 1 << 20
_QMP_LIMIT = 1 << 20

_log = logging.getLogger(__name__)


def escaped(path: Path) -> str:
    """A file's name within one of QEMU's options, its commas doubled."""
    return str(path).replace(",", ",,")


def nic_count(image: EvmImage) -> int:
    """How many NICs the image's arguments ask a network for."""
    indices = re.findall(r"\{net\[(\d+)\]\}", " ".join(image.arguments))
    return max((int(index) + 1 for index in indices), default=0)


class Machine:
    """Starts and kills QEMU, one call at a time, with `files` as disks and `options` as further words."""

    def __init__(
        self,
        image: EvmImage,
        files: dict[str, Path],
        log: Path,
        console: ConsoleServer,
        *,
        devices: Callable[[], AbstractContextManager[NetDevices]],
        options: Sequence[str] = (),
    ) -> None:
        self.last_exit: Exit | None = None
        self._image = image
        self._disks = files
        self._log = log
        self._console = console
        self._devices = devices
        self._options = options
        self._run: _Run | None = None

    @property
    def pid(self) -> int | None:
        """The process id of a running QEMU."""
        return self._run.process.pid if self._run and not self._run.gone.is_set() else None

    async def start(self) -> None:
        """Start a fresh QEMU and return when its guest runs; raises LabError with QEMU's own reason."""
        assert self._run is None
        run = await self._spawn()
        self._run = run
        within = START_TIMEOUT * slowness()
        try:
            async with asyncio.timeout(within):
                await run.running()
            _log.info("QEMU runs as pid %d", run.process.pid)
            return
        except TimeoutError:
            await self.stop(f"not running {within:.0f} s after its start")
            raise LabError(f"QEMU has not started its guest within {within:.0f} s; see {self._log}") from None
        except ConnectionError:
            # QEMU closes its control socket by ending: let it come to that.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(run.gone.wait(), 1)
        except BaseException:
            await self.stop("the bench stopped while QEMU started")
            raise
        await self.stop("")
        reason = self.last_exit.detail or self.last_exit.reason if self.last_exit else ""
        raise LabError(f"QEMU ended as soon as it was started: {reason}; see {self._log}")

    async def stop(self, reason: str = "power switched off") -> None:
        """Kill QEMU and return when it is gone; flushed data is safe in the host's page cache."""
        run = self._run
        if run is None:
            return
        if not run.gone.is_set():
            run.killed_because = reason
            run.kill()
        await run.finished
        self._run = None
        await self._released()

    async def _released(self) -> None:
        """Wait for what the killed QEMU had under way: the next one must find quiet disks."""
        deadline = asyncio.get_running_loop().time() + _RELEASE_TIMEOUT * slowness()
        for disk in self._disks.values():
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
            with self._devices() as net, self._open_log() as log:
                command = self._command(net, line_qemu.fileno(), control_qemu.fileno())
                start_of_log = log.tell()
                process = subprocess.Popen(
                    command,
                    env={**os.environ, **self._image.qemu.env},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self._image.directory,
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
        run = _Run(process)
        await self._console.attach(line)
        run.finished = asyncio.ensure_future(self._watch(run, start_of_log))
        run.reader, run.writer = await asyncio.open_connection(sock=control, limit=_QMP_LIMIT)
        return run

    def _command(self, net: NetDevices, line: int, control: int) -> list[str]:
        files = {name: escaped(path) for name, path in self._disks.items()}
        values = {"disk": files, "net": net.definitions, "dir": str(self._image.directory)}
        try:
            arguments = [argument.format(**values) for argument in self._image.arguments]
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise LabError(
                f"an argument in {self._image.directory / 'image.json'} cannot be filled in: {error!r}"
            ) from None
        return [
            *("setpriv", "--pdeathsig", "KILL", "--"),  # QEMU ends with the bench, however that ends
            *net.prefix,
            *self._image.qemu.command,
            *arguments,
            *self._options,
            *("-display", "none", "-monitor", "none"),
            *("-chardev", f"socket,id=evmperf-console,fd={line}"),
            *("-serial", "chardev:evmperf-console"),
            *("-chardev", f"socket,id=evmperf-qmp,fd={control}"),
            *("-mon", "chardev=evmperf-qmp,mode=control"),
        ]

    def _open_log(self) -> Any:
        full = self._log.exists() and self._log.stat().st_size > _LOG_LIMIT
        log = self._log.open("wb" if full else "ab")
        log.write(f"--- {now()} QEMU starts\n".encode())
        log.flush()
        return log

    async def _watch(self, run: _Run, start_of_log: int) -> None:
        """Wait for the end of a QEMU, whoever caused it, and record why it ended."""
        await run.gone.wait()
        await self._console.detach()
        status = run.process.wait()
        detail = _complaint(self._log, start_of_log)
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
        run.close()


class _Run:
    """One QEMU process and its control socket (QMP)."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.gone = asyncio.Event()
        self.killed_because = ""
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.finished: asyncio.Future[None]
        self._pidfd = os.pidfd_open(process.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._ended)

    def _ended(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        self.gone.set()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def running(self) -> None:
        """Return when the guest runs; raises ConnectionError if the control socket ends first."""
        self.writer.write(b'{"execute":"qmp_capabilities"}\n{"execute":"query-status"}\n')
        # QEMU answers these from its main loop, which it enters after all devices are made.
        while True:
            message = await self._message()
            if isinstance(message.get("return"), dict) and message["return"].get("running"):
                return

    def close(self) -> None:
        os.close(self._pidfd)
        if hasattr(self, "writer"):
            self.writer.close()

    async def _message(self) -> dict[str, Any]:
        try:
            line = await self.reader.readline()
            if not line:
                raise ConnectionError("QEMU closed its control socket")
            message = json.loads(line)
        except ValueError as error:
            raise ConnectionError(f"QEMU's control socket is out of step: {error}") from None
        return message if isinstance(message, dict) else {}


def _complaint(log: Path, start: int) -> str:
    """QEMU's first line that is not a mere warning, without the path of its program."""
    try:
        with log.open("rb") as file:
            file.seek(start)
            lines = file.read(65536).decode(errors="replace").splitlines()
    except OSError:
        return ""
    lines = [line.strip() for line in lines if line.strip() and not line.startswith("---")]
    errors = [line for line in lines if "warning:" not in line]
    first = (errors or lines or [""])[0]
    return re.sub(r"^\S*/(qemu-system-\w+:)", r"\1", first)
