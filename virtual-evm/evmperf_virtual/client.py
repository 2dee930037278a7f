"""The client of a virtual board's bench: start, switch, ask, stop.

Each error is one sentence: UsageError for a wrong request, LabError for a bench that fails.
"""

import contextlib
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

import msgspec

from evmperf.boards.board import VIRTUAL_HOST, Board
from evmperf.measure.hostload import slowness
from evmperf.model.errors import LabError, UsageError
from evmperf.model.places import for_children
from evmperf_virtual import board as boards
from evmperf_virtual import envfile, image, tester
from evmperf_virtual.board import BenchStatus, LabOptions, LabRecord

START_TIMEOUT = 60.0
"""Seconds for a bench to become ready; most of it for a slow disk on which disks are made."""
STOP_TIMEOUT = 15.0
_SWITCH_TIMEOUT = 20.0
_ANSWER_TIMEOUT = 5.0
_PROBE_S = 1.0


class LabClient:
    """The bench of one board, whether it runs or not. Raises UsageError for an unusable name."""

    def __init__(self, name: str = boards.DEFAULT_NAME) -> None:
        self.name = name
        self.folder = boards.folder(name)

    @property
    def running(self) -> bool:
        """Whether a bench process lives for this board."""
        return boards.is_locked(self.folder)

    @property
    def record(self) -> LabRecord:
        """Process and ports of the running bench; raises LabError if none runs, or is not ready."""
        record = boards.read_record(self.folder) if self.running else None
        if record is None:
            raise LabError(
                f"the bench of board {self.name} is not running: "
                f"start it with `evmperf virtual start {self.name}`"
            )
        return record

    def start(
        self,
        variant: str = boards.DEFAULT_NAME,
        *,
        serial_port: int | None = None,
        power_port: int | None = None,
        fresh: bool = False,
        qemu_options: Sequence[str] = (),
    ) -> bool:
        """Start the bench, with the power off; False if one of this variant runs already.

        A port of 0 is any free one, None the one in `env/NAME.yaml`, any free one without such a
        file. `qemu_options` go to QEMU after those of the image, for experiments. Returns when the
        bench answers. Raises UsageError if one with other settings is running, LabError if it cannot
        be started.
        """
        with boards.starting(self.folder, START_TIMEOUT):
            if self.running:
                asked = {"variant": variant, "serial_port": serial_port, "power_port": power_port}
                if other := self._other(asked | {"qemu_options": list(qemu_options)}, fresh=fresh):
                    raise UsageError(
                        f"board {self.name} is already running {other}: "
                        f"stop it first with `evmperf virtual stop {self.name}`"
                    )
                return False
            serial, power = envfile.usual_ports(self.name, serial_port, power_port)
            for port in (serial, power):
                if not 0 <= port <= 65535:
                    raise UsageError(f"{port} is not a TCP port: use a number from 0 to 65535")
            self._spawn(LabOptions(self.name, variant, serial, power, fresh, qemu_options))
            return True

    def stop(self) -> bool:
        """Stop the bench and remove the remains of a killed one; False if none ran. Raises LabError."""
        if not self.folder.exists():
            return False
        with boards.starting(self.folder, START_TIMEOUT):
            if not self.running:
                tester.clean_up(self.folder)
                return False
            record = self.record
            with contextlib.suppress(LabError):
                self._request("POST", "/stop")
            if not self._has_ended(record):
                # A bench that hangs; its QEMU dies with it.
                if not self._has_ended(record, kill=True):
                    raise LabError(
                        f"the bench of board {self.name} (process {record.pid}) does not end, "
                        f"even when killed: see {self.folder / 'bench.log'}"
                    )
                tester.clean_up(self.folder)
            return True

    def on(self) -> None:
        """Switch the power on, no-op if it is; raises LabError with QEMU's reason on failure."""
        self._request("PUT", "/power/0", b"1", _SWITCH_TIMEOUT)

    def off(self) -> None:
        """Cut the power, no-op if it is off; returns when the board is dead."""
        self._request("PUT", "/power/0", b"0", _SWITCH_TIMEOUT)

    def card(self, where: str) -> None:
        """Move the card: `dut`, `host` or `off`; raises LabError while the board is on."""
        self._request("PUT", "/card/0", where.encode())

    def status(self) -> BenchStatus:
        """Ask the bench; raises LabError if none runs or it does not answer."""
        try:
            return msgspec.json.decode(self._request("GET", "/status"), type=BenchStatus)
        except msgspec.DecodeError as error:
            raise LabError(
                f"the bench of board {self.name} was started by another version of evmperf ({error}): "
                f"stop it with `evmperf virtual stop` and start it again"
            ) from None

    def _other(self, asked: Mapping[str, object], *, fresh: bool) -> str:
        """What the running bench has otherwise than was asked for, "" for nothing."""
        has = vars(self.status())
        if other := [name for name, value in asked.items() if value and value != has[name]]:
            return "with " + ", ".join(f"{name.replace('_', ' ')} {has[name]}" for name in other)
        return "so its disks cannot be made anew" if fresh else ""

    def _spawn(self, options: LabOptions) -> None:
        """Start the process and wait for its word that it is ready."""
        # -P: not the evmperf that may lie in the current folder.
        encoded = msgspec.json.encode(options).decode()
        command = [sys.executable, "-P", "-m", "evmperf_virtual.server", encoded]
        try:
            with (self.folder / "bench.log").open("ab") as log:
                process = subprocess.Popen(
                    command,
                    env=for_children(os.environ),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            raise LabError(f"the bench process cannot be started: {error}") from None
        within = START_TIMEOUT * slowness()
        try:
            # Its child, which goes on in the same group, closes the pipe when it is ready.
            told, _ = process.communicate(timeout=within)
            why = f"ended while it started ({self._last_word()})"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            told, why = b"", f"is not ready after {within:.0f} s"
        if not told:
            raise LabError(f"the bench of board {self.name} {why}: see {self.folder / 'bench.log'}")
        if "error" in (reply := json.loads(told)):
            kind = UsageError if reply["kind"] == "usage" else LabError
            raise kind(reply["error"])

    def _request(self, method: str, path: str, body: bytes = b"", timeout: float = 0.0) -> bytes:
        who, port = f"the bench of board {self.name}", self.record.power_port
        within = (timeout or _ANSWER_TIMEOUT) * slowness()
        link = http.client.HTTPConnection(VIRTUAL_HOST, port, timeout=within)
        try:
            link.request(method, path, body)
            response = link.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            why = error or type(error).__name__
            raise LabError(f"{who} does not answer on {VIRTUAL_HOST}:{port}: {why}") from None
        finally:
            link.close()
        if response.status != http.HTTPStatus.OK:
            raise LabError(f"{who}: {answer.decode(errors='replace').strip()}")
        return answer

    def _last_word(self) -> str:
        try:
            return (self.folder / "bench.log").read_text(errors="replace").splitlines()[-1]
        except (OSError, IndexError):
            return "its log is empty"

    def _has_ended(self, record: LabRecord, *, kill: bool = False) -> bool:
        """Wait until the process is gone and with it its lock; False after STOP_TIMEOUT."""
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(record.pid)
            try:
                # The pid is held by the handle now: who has the lock is that process.
                if self.running:
                    if kill:
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                    select.select([handle], [], [], STOP_TIMEOUT * slowness())
            finally:
                os.close(handle)
        return not self.running


def for_board(board: Board, progress: Callable[[str], None]) -> LabClient | None:
    """The bench of a virtual EVM, built if needed; None for a real board, and if its serial port answers
    already. Raises UsageError for a file without ports, LabError for a failed start.
    """
    variant = board.options.board.virtual
    if not variant:
        return None
    serial_port, power_port = board.lab_ports()
    with socket.socket() as probe:
        probe.settimeout(_PROBE_S)
        if probe.connect_ex((VIRTUAL_HOST, serial_port)) == 0:
            return None
    image.build(variant, progress=progress)
    bench = LabClient(variant)
    started = bench.start(variant, serial_port=serial_port, power_port=power_port)
    return bench if started else None


def all_benches() -> list[LabClient]:
    """The benches of all boards that were ever started here, running or not."""
    return [LabClient(name) for name in boards.names()]
