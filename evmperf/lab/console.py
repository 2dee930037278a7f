"""A Labgrid console driver that stamps every byte when it arrives and watches the board."""

import threading
import time
from typing import Any

import attr
from labgrid.driver.common import Driver
from labgrid.driver.consoleexpectmixin import ConsoleExpectMixin
from labgrid.factory import target_factory
from labgrid.protocol import ConsoleProtocol, PowerProtocol
from labgrid.resource import SerialPort
from labgrid.step import StepEvent, step, steps
from labgrid.util import PtxExpect
from labgrid.util.proxy import proxymanager
from pexpect import TIMEOUT

from evmperf.boards.console.attempt import NotReached
from evmperf.boards.console.record import POWER_ANSWERED, POWER_OFF, POWER_ON, ConsoleRecord, History, bounded
from evmperf.boards.console.signs import Alarm, last_line
from evmperf.boards.console.watch import Watch
from evmperf.lab.stamper import StampedPort
from evmperf.model import limits
from evmperf.model.concealing import Typed
from evmperf.model.errors import BoardError, EvmperfError, LabError

_RETRY_S = 0.1
"""Pause between attempts to reopen a lost console, in seconds."""
_MOMENT_S = 0.01
_SILENT_S = 0.1


class ConsoleAlarm(BoardError):
    """The console showed what must not come; `alarm` says what."""

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(str(alarm))
        self.alarm = alarm
        self.kind = alarm.kind
        self.permanent = alarm.permanent


class ConsoleLost(LabError):
    """The connection to the console broke; what the board said meanwhile is gone."""


class ConsoleFlood(BoardError):
    """The board said so much that some of it had to be cut."""


@target_factory.reg_driver
@attr.s(eq=False)
class StampedSerialDriver(ConsoleExpectMixin, Driver, ConsoleProtocol):  # type: ignore[misc]
    """ConsoleProtocol over a serial port, local or networked, with arrival stamps.

    A process of its own reads the console, so stamps do not wait for a test to look. Input that
    came before a power-on is dropped at the power-on. The driver follows the target's power
    driver through Labgrid's step events; it needs no help from the strategy.

    Args:
        timeout: seconds to wait for the connection
        reconnect: seconds a lost connection may take to come back before the lab counts as broken
        txdelay, txchunk: pause in seconds after each so many bytes, for UARTs without flow control
    """

    bindings = {"port": {"SerialPort", "NetworkSerialPort"}}  # noqa: RUF012  # Labgrid's form

    txdelay: float = attr.ib(default=0.0, validator=attr.validators.instance_of(float))
    txchunk: int = attr.ib(default=1, validator=attr.validators.instance_of(int))
    timeout: float = attr.ib(default=3.0, validator=attr.validators.instance_of(float))
    reconnect: float = attr.ib(default=30.0, validator=attr.validators.instance_of(float))

    def __attrs_post_init__(self) -> None:
        """Set up without touching the wire yet."""
        super().__attrs_post_init__()
        self._found = PtxExpect(self)
        """Where `expect` has come to."""
        self.history = History()
        self._watch = Watch()
        self._news = threading.Condition()
        self._buffer = bytearray()
        self._alarm: Alarm | None = None
        self._error: EvmperfError | None = None
        self._forbidden: LabError | None = None
        self._transport: StampedPort | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._is_off = False
        self._heard = time.monotonic()
        self._silence_s = 0.0
        self._typed = Typed(b"")

    def on_activate(self) -> None:
        """Open the console and start reading."""
        self._closing.clear()
        self._error = None
        self._transport = self._connect()
        self._thread = threading.Thread(target=self._read_on, name="console", daemon=True)
        self._thread.start()
        steps.subscribe(self._on_step)

    def on_deactivate(self) -> None:
        """Close the console."""
        steps.unsubscribe(self._on_step)
        self._closing.set()
        if self._transport:
            self._transport.close()
        if self._thread:
            self._thread.join(timeout=self.timeout)
        self._transport = None

    def stage(self, reached: str, silence_s: float = 0.0) -> None:
        """The boot comes to a stage by its name in `Watch` (`await_uboot`, `settle`, `arrive`; "" for none
        of them): from now on that long without a byte is a boot loader that hangs; 0 for never.
        """
        with self._news:
            self._heard = time.monotonic()
            if reached:
                getattr(self._watch, reached)()
            self._silence_s = silence_s

    @property
    def silent_s(self) -> float:
        """Seconds since the board last said something."""
        return time.monotonic() - self._heard

    def fall_silent(self, within_s: float) -> None:
        """Wait until a board without power has said all: a console server's buffers deliver what came before
        for a while, and it must not count as the next boot's.
        """
        ends = time.monotonic() + within_s
        while self.silent_s < _SILENT_S and time.monotonic() < ends:
            time.sleep(_MOMENT_S)

    def output(self) -> str:
        """What the board has said since its power-on."""
        data = b"".join(r.data for r in self.history.records() if r.kind == "<")
        return data.decode("utf-8", "replace")

    @property
    def notes(self) -> list[str]:
        """What is worth knowing of this boot although it went on."""
        with self._news:
            return list(self._watch.notes)

    def note(self, text: str) -> None:
        """Keep something with this boot."""
        with self._news:
            self._watch.notes.append(text)

    @property
    def recent(self) -> str:
        """What the board said since its power-on, or since U-Boot's prompt."""
        with self._news:
            return self._watch.output

    def forbid(self, error: LabError) -> None:
        """Send no byte from now on: reading and writing raise `error`; callable in any thread."""
        with self._news:
            self._forbidden = error
            self._news.notify_all()
        self.history.event(f"no more input from here: {error}")

    def restart(self, event: str) -> None:
        """Begin the record of a boot, with an event of `evmperf.boards.console.record`."""
        self.drop_input()
        with self._news:
            self._alarm = None
            if isinstance(self._error, ConsoleFlood):
                self._error = None
            self._heard = time.monotonic()
            self._watch.restart()
        self.history.event(event)

    def tail(self, lines: int) -> list[str]:
        """The last lines that the board printed since its power-on."""
        return self.history.tail(lines)

    def records(self) -> list[ConsoleRecord]:
        """The record since the power-on, with the bounds that hold over this kind of wire."""
        wire = "serial" if isinstance(self.port, SerialPort) else self.port.protocol
        return bounded(self.history.records(), wire, self.port.speed)

    def drop_input(self) -> None:
        """Forget everything received and not yet looked at."""
        with self._news:
            self._buffer.clear()
        self._found = PtxExpect(self)  # an emptied one still has what it had looked at

    def take_pending(self) -> bytes:
        """What `expect` has read ahead, for a reader that goes on without it."""
        pending: bytes = self._found.buffer
        self._found.buffer = b""
        return pending

    @Driver.check_active  # type: ignore[untyped-decorator]
    @step(args=["pattern"], result=True)  # type: ignore[untyped-decorator]
    def expect(self, pattern: Any, timeout: float = -1) -> tuple[int, Any, Any, Any]:
        """Which of the patterns came, what stood before it, its match and its text; raises TIMEOUT."""
        index = self._found.expect(pattern, timeout=timeout)
        return index, self._found.before, self._found.match, self._found.after

    @Driver.check_active  # type: ignore[untyped-decorator]
    def sendline(self, line: str) -> None:
        """Type a line."""
        self._found.sendline(line)

    @Driver.check_active  # type: ignore[untyped-decorator]
    def sendcontrol(self, char: str) -> None:
        """Type Ctrl and a letter."""
        self._found.sendcontrol(char)

    def await_data(self, timeout_s: float) -> bytes:
        """What arrived, after at most `timeout_s`. Raises ConsoleAlarm, ConsoleFlood, ConsoleLost, LabError,
        or pexpect's TIMEOUT when nothing came.
        """
        return bytes(self._read(1, timeout_s))

    def _read(self, size: int = 1, timeout: float = 0.0, max_size: int | None = None) -> bytes:
        deadline = time.monotonic() + timeout
        with self._news:
            while True:
                if self._forbidden:
                    raise self._forbidden
                if self._alarm and len(self._buffer) < size:
                    # What came before the alarm is looked at first: it tells how far things got.
                    raise ConsoleAlarm(self._alarm)
                if self._error:
                    error = self._error
                    if isinstance(error, ConsoleLost | ConsoleFlood):
                        self._error = None  # said once: the connection is back, the flood over
                    raise error
                if len(self._buffer) >= size:
                    break
                left = deadline - time.monotonic()
                if self._silence_s:
                    speech = self._silence_s - self.silent_s
                    if speech < 0:
                        raise self._silence()
                    left = min(left, speech + _MOMENT_S) if left > 0 else left
                if left <= 0:
                    raise TIMEOUT(f"nothing on the console for {timeout:.2f} seconds")
                self._news.wait(left)
            taken = bytes(self._buffer[: max_size or None])
            del self._buffer[: len(taken)]
        self.history.check()
        if len(self._found.buffer) > limits.UNREAD_BYTES:
            self.drop_input()
            raise ConsoleFlood(
                f"the board printed more than {limits.mib(limits.UNREAD_BYTES)} without the expected text"
            )
        return taken

    def _silence(self) -> BoardError:
        """Why a boot loader is given up."""
        output, seconds = self._watch.output, f"{self._silence_s:g} s"
        if not last_line(output).strip("?"):
            return BoardError(
                f"no output in {seconds} since the power was switched on: check that the board "
                f"has power, that its medium is in its slot and bootable (some ROMs are "
                f"silent otherwise), the console's cable and its UART on the board"
            )
        where = f" in {self._watch.phase}" if self._watch.phase else ""
        return NotReached(f"the boot hangs{where}: no output for {seconds}", output)

    def send_secret(self, secret: str) -> None:
        """Type a line of which every record has the length only, also where the board repeats it; raises what
        writing raises. Labgrid's steps, which are logged with their arguments, do not get it.
        """
        self._typed = Typed(secret.encode())
        line, kept = f"{secret}\n".encode(), self._typed.asterisks + b"\n"
        size = self.txchunk if self.txdelay else len(line)
        for at in range(0, len(line), size):
            time.sleep(self.txdelay)
            self._send(line[at : at + size], kept[at : at + size])

    def _write(self, data: bytes) -> int:
        self._send(data, data)
        return len(data)

    def _send(self, data: bytes, kept: bytes) -> None:
        with self._news:
            self._news.wait_for(lambda: self._transport or self._error or self._forbidden, self.reconnect)
        transport = self._transport
        if self._forbidden:
            raise self._forbidden
        if transport is None:
            raise self._error or LabError("the console is not connected")
        # Before it is sent: on a busy host the board may have answered before we run again.
        sent_ns = time.monotonic_ns()
        try:
            transport.write(data)
        except OSError as error:
            raise ConsoleLost(f"the console did not take input ({error})") from error
        self.history.feed(kept, sent_ns, kind=">")

    def _connect(self) -> StampedPort:
        if isinstance(self.port, SerialPort):
            return StampedPort("serial", self.port.port, 0, self.port.speed, self.timeout)
        host, port = proxymanager.get_host_and_port(self.port)
        return StampedPort(self.port.protocol, host, port, self.port.speed, self.timeout)

    def _read_on(self) -> None:
        while not self._closing.is_set():
            assert self._transport
            try:
                self._take(*self._transport.read())
            except OSError as error:
                if self._closing.is_set() or not self._recover(str(error)):
                    return

    def _take(self, mono_ns: int, bound_ns: int, data: bytes) -> None:
        if not data:
            self._flooded(bound_ns, mono_ns)
            return
        data = self._typed.without(data)
        self.history.feed(data, mono_ns, bound_ns)
        if self.history.is_old(mono_ns):
            return
        with self._news:
            self._heard = time.monotonic()
            alarm = self._watch.feed(data)
            if alarm:
                self.history.event(f"alarm: {alarm.name}: {alarm.text}", mono_ns)
            # What comes behind an alarm tells nothing: U-Boot's prompt would race with it.
            if not self._alarm:
                self._buffer += data[: max(len(data) - self._watch.rest, 0)]
            self._alarm = self._alarm or alarm
            self._news.notify_all()
            much = len(self._buffer) - limits.UNREAD_BYTES
        if much > 0:
            self._flooded(much + limits.UNREAD_BYTES // 2, mono_ns)

    def _flooded(self, cut: int, mono_ns: int) -> None:
        """So many bytes were cut: the newest that fit stay to be read, after this was said."""
        self.history.event(f"{cut} bytes cut: the board floods its console", mono_ns)
        if self.history.is_old(mono_ns):
            return
        with self._news:
            del self._buffer[: max(0, len(self._buffer) - limits.UNREAD_BYTES // 2)]
            self._error = self._error or ConsoleFlood(
                f"the board floods its console: {cut} bytes came too fast to be checked, and were cut"
            )
            self._news.notify_all()

    def _recover(self, reason: str) -> bool:
        """Reopen the console; in the reader's thread. False when it stays away. A UART adapter that the board
        powers goes with its power: then nothing is lost, and the time runs from the power-on.
        """
        self.history.event(f"console lost: {reason}")
        lost, began, was_off = self._transport, time.monotonic(), self._is_off
        self._transport = None
        if lost:
            lost.close()
        while time.monotonic() - began < self.reconnect:
            try:
                transport = self._connect()
            except LabError:
                if self._closing.wait(_RETRY_S):
                    return False
                began = time.monotonic() if self._is_off else began
                continue
            away = time.monotonic() - began
            with self._news:
                self._transport = transport
            self.history.event(f"console back after {away:.1f} s")
            if was_off:
                return True
            self._fail(ConsoleLost(f"the console was away for {away:.1f} s; its output is lost"), drop=True)
            return True
        self._fail(
            LabError(
                f"the console went away ({reason}) and did not come back in {self.reconnect:g} s: "
                f"check the console server and the cable"
            )
        )
        return False

    def _fail(self, error: LabError, *, drop: bool = False) -> None:
        with self._news:
            if drop:
                self._buffer.clear()
            self._error = error
            self._news.notify_all()

    def _on_step(self, event: StepEvent) -> None:
        step: Any = event.step
        source = step.source
        if step.title not in ("on", "off") or not isinstance(source, PowerProtocol):
            return
        if source.target is not self.target:
            return
        state = event.data.get("state")
        if state == "start":
            self._is_off = step.title == "off"
        if step.title == "on" and state == "start":
            self.restart(POWER_ON)
        elif step.title == "on":
            self.history.event(POWER_ANSWERED)
        elif state == "start":
            self.history.event(POWER_OFF)
