"""The bench process: what a lab is to a real board, for a virtual one.

One process a board: the serial console (`console`), the power switch (`power`), the board itself
(`machine`) and the tester beside it (`tester`), until it is told to stop. `client` starts it in the
background; `python -m evmperf_virtual.server` is not meant for people.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path

import msgspec

from evmperf.model.errors import EvmperfError, LabError, UsageError
from evmperf_virtual import board as boards
from evmperf_virtual import disks, tester
from evmperf_virtual.board import BenchStatus, LabOptions
from evmperf_virtual.console import ConsoleServer
from evmperf_virtual.image import EvmImage, load
from evmperf_virtual.machine import Machine, nic_count
from evmperf_virtual.power import PowerServer, SimulatedMeter
from evmperf_virtual.testermachine import DISK, TesterMachine

_LOG_LIMIT = 4 << 20
_log = logging.getLogger(__name__)


class VirtualLab:
    """Everything around one board, between `open` and `close`."""

    def __init__(self, options: LabOptions, folder: Path) -> None:
        self.stopping = asyncio.Event()
        self._options = options
        self._folder = folder
        self._stack = contextlib.AsyncExitStack()
        self._turn = asyncio.Lock()
        self._files: dict[str, Path]
        self._image: EvmImage
        self._console: ConsoleServer
        self._beside: tester.TesterSpace | TesterMachine | None = None
        self._machine: Machine
        self.status: BenchStatus

    async def open(self) -> None:
        """Make everything ready; raises EvmperfError. `close` removes what was made until then."""
        options, folder = self._options, self._folder
        lock = boards.hold_lock(folder)
        self._stack.callback(os.close, lock)
        tester.clean_up(folder)  # of a bench that was killed
        self._stack.callback(tester.clean_up, folder)
        self._image = load(options.variant)
        self._console = ConsoleServer(folder / "console.stamps")
        self._stack.push_async_callback(self._console.close)
        meter = SimulatedMeter(options.name, lambda: self._machine.pid)
        # Last in, first out: close() ends the board first, then the rest.
        serial_port = await self._console.listen(options.serial_port)
        # Clients of the power port wait in its backlog until the rest is ready.
        power = PowerServer(options.power_port, self._act, meter)
        self._stack.callback(power.close)
        self._files = disks.prepare(self._image, folder, fresh=options.fresh)
        without_tester = await self._open_tester()
        self._machine = Machine(
            self._image,
            self._files,
            folder / "qemu.log",
            self._console,
            self._beside.devices if self._beside else lambda: tester.no_tester(nic_count(self._image)),
            options.qemu_options,
        )
        now = boards.now()
        self.status = BenchStatus(
            pid=os.getpid(),
            serial_port=serial_port,
            power_port=power.port,
            name=options.name,
            variant=options.variant,
            qemu_options=list(options.qemu_options),
            folder=str(folder),
            image_hash=self._image.hash,
            started=now,
            since=now,
            tester=self._beside.info if self._beside else None,
            tester_reason=without_tester,
        )
        if card := (self._image.boot_rom or {}).get("disk"):
            self.status.card, self.status.card_file = "dut", str(self._files[card])
        os.pwrite(lock, msgspec.json.encode(self.status), 0)
        self._stack.push_async_callback(self._machine.stop, "the bench stopped")

    async def close(self) -> None:
        """Cut the power, close the ports, remove the tester."""
        self.stopping.set()
        async with self._turn:  # what is being switched comes to its end
            await self._stack.aclose()

    async def _open_tester(self) -> str:
        """Make the tester, or return the reason why not: a board without a network is still useful."""
        nics = nic_count(self._image)
        reason = tester.missing() if nics else "the image has no network"
        try:
            if self._image.tester_machine:
                machine = TesterMachine(self._image, self._folder, self._files.pop(DISK), nics)
                self._stack.push_async_callback(machine.close)
                await machine.start()
                self._beside = machine
            elif not reason:
                self._beside = tester.TesterSpace(self._folder, nics, self._image.tester_path)
        except LabError as error:
            reason = str(error)
        if self._beside is None:
            _log.warning("no tester: %s", reason)
            return reason
        return ""

    async def _act(self, method: str, path: str, body: str) -> str:
        """Carry out a request of the power port; its answer. Raises UsageError or LabError."""
        match method, path:
            case "GET", "/power/0":
                answer = "1" if self.status.power and self._machine.pid else "0"  # QEMU may have ended
            case "PUT", "/power/0":
                if body not in ("0", "1"):
                    raise UsageError("the body must be 0 or 1")
                await self._set_power(body == "1")
                answer = body
            case "GET", "/card/0":
                self._check_card_switch()
                answer = self.status.card
            case "PUT", "/card/0":
                if body not in boards.CARD:
                    raise UsageError(f"the body is one of {', '.join(boards.CARD)}")
                await self._set_card(body)
                answer = self.status.card
            case "GET", "/status":
                answer = msgspec.json.encode(self._status()).decode()
            case "GET", "/tester":
                answer = msgspec.json.encode(await self._tester()).decode()
            case "POST", "/stop":
                self.stopping.set()
                answer = "stopping"
            case _:
                raise UsageError(
                    f"{method} {path}: there is only PUT and GET of /power/0 (one board, one outlet) and "
                    f"/card/0, GET of /status and /tester, and POST of /stop"
                )
        return answer

    async def _set_power(self, on: bool) -> None:
        """Switch the board on or off, no-op if it is; raises LabError if QEMU does not start."""
        async with self._turn:
            if self.stopping.is_set():
                raise LabError("the bench is stopping")
            if on == self.status.power:
                return
            _log.info("power %s", "on" if on else "off")
            if on:
                self._start_rom()
                await self._machine.start()
                self.status.power_cycles += 1
            else:
                await self._machine.stop()
            self.status.power, self.status.since = on, boards.now()

    def _start_rom(self) -> None:
        if self._image.boot_rom:
            inserted = self.status.card in ("", "dut")
            self.status.silent = disks.start_rom(
                self._image.boot_rom, self._image.directory, self._files, inserted=inserted
            )
            if self.status.silent:
                _log.warning("the boot ROM starts nothing: %s", self.status.silent)

    async def _set_card(self, where: str) -> None:
        """Move the card; raises LabError while the board is on, or has no card switch."""
        async with self._turn:
            self._check_card_switch()
            if self.status.power and where != self.status.card:
                raise LabError("the card cannot be moved while the board is on: switch the board off first")
            self.status.card = where
            _log.info("card: %s", self.status.card)

    def _check_card_switch(self) -> None:
        if not self.status.card:
            raise LabError(f"the virtual EVM {self._image.variant} has no card switch")

    def _status(self) -> BenchStatus:
        """What `GET /status` answers; brings all stamps to their file first."""
        self._console.stamps.flush()
        now = self.status
        now.qemu_pid, now.last_exit = self._machine.pid, self._machine.last_exit
        now.console_bytes, now.console_clients = self._console.stamps.offset, len(self._console.clients)
        return now

    async def _tester(self) -> boards.TesterInfo:
        """What `GET /tester` answers once the tester is ready; raises LabError without one."""
        if self._beside is None:
            raise LabError(f"the virtual EVM has no tester: {self.status.tester_reason}")
        if isinstance(self._beside, TesterMachine):
            await self._beside.ready()
        return self._beside.info


async def serve(options: LabOptions, folder: Path, ready: Callable[[], None]) -> None:
    """Serve until a signal or `POST /stop`; calls `ready` once all answers. Raises EvmperfError."""
    bench = VirtualLab(options, folder)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, bench.stopping.set)
    try:
        await bench.open()
        _log.info("ready: %s", bench.status)
        ready()
        await bench.stopping.wait()
        _log.info("stopping")
    finally:
        await bench.close()
    _log.info("stopped")


def main(options: LabOptions) -> int:
    """Become a daemon and serve; tells the starter through standard output how it went."""
    # The starter waits for its child only until here: no zombie stays with a starter that lives on.
    if os.fork():
        os._exit(0)

    def tell(**message: str) -> None:
        with contextlib.suppress(OSError):
            os.write(1, json.dumps(message).encode() + b"\n")
        os.dup2(2, 1)

    try:
        folder = boards.folder(options.name)
        logging.basicConfig(
            level=logging.INFO,
            format="%(asctime)s.%(msecs)03d %(levelname)-7s %(message)s",
            datefmt="%Y-%m-%dT%H:%M:%S",
            handlers=[RotatingFileHandler(folder / "bench.log", maxBytes=_LOG_LIMIT, backupCount=1)],
        )
        asyncio.run(serve(options, folder, lambda: tell(ready=options.name)))
    except EvmperfError as error:
        _log.error("%s", error)
        tell(error=str(error), kind=error.kind.value)
        return 1
    except OSError as error:
        _log.exception("the bench fails")
        tell(error=f"the bench of board {options.name} cannot be started: {error}", kind="lab")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(msgspec.json.decode(sys.argv[1], type=LabOptions)))
