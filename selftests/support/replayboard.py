"""A board that says what a recorded console says, and reacts to what is typed as a board would."""

import re
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from labgrid import Environment

from evmperf.boards import board as boards
from evmperf.boards.console.marks import ObservedBoot
from evmperf.lab.bench import LabgridBench
from evmperf.model.errors import EvmperfError
from selftests.support.boardfiles import console_and_power
from selftests.support.fakeboard import FakeBoard, FakeSwitch

_BYTES_A_PIECE, _PIECE_S = 115, 0.01
"""115200 baud."""
_COUNTDOWN_S = 2.0
_AUTOBOOT = re.compile(rb"(?:Hit any key to stop autoboot:|Press \S+ to abort autoboot in)[^\n]*\n?")
_OPTARGS = re.compile(r"setenv optargs ([^;]*)")


@dataclass
class Play:
    """What a board says: `text` from power-on, `linux` after it where the recording ends early.

    `environment` is U-Boot's, `system` what the running system answers (cmdline, root, type; of
    the command line a default is made of the text), `stoppable` whether a key stops the countdown.
    """

    text: bytes
    linux: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)
    system: Mapping[str, str] = field(default_factory=dict)
    stoppable: bool = True


class ReplayBoard(FakeBoard):
    """FakeBoard with the text of a recording instead of its own."""

    def __init__(self, play):
        super().__init__()
        self.prompt = "root@board:~# "
        self.said_at = time.monotonic()
        self._play = play
        self._environment = dict(play.environment)
        self._turn = 0
        countdown = _AUTOBOOT.search(play.text)
        if countdown:
            self._loader = play.text[: countdown.start()]
            self._countdown = countdown[0].rstrip(b"\r\n")
            rest = play.text[countdown.end() :]
            self._rest = re.sub(rb"^(?:\s*=> ?\r?\n?)+", b"", rest) + play.linux
        else:
            self._loader, self._rest, self._countdown = play.text, play.linux, b""

    def switch(self, on):
        deadline = time.monotonic() + 10
        while on and not self._client and time.monotonic() < deadline:
            time.sleep(0.01)  # the console is connected, but our end of it may not know yet
        with self._lock:
            self._turn += 1
            self._line = ""
            self._state = "dead" if on else "off"
            self._environment = dict(self._play.environment)
        if on:
            threading.Thread(target=self._run_loader, args=[self._turn], daemon=True).start()

    def _run_loader(self, turn):
        if not self._pour(self._loader, turn):
            return
        if not self._countdown:
            if self._loader.rstrip(b" ").endswith(b"=>"):
                self._state = "uboot"
            elif self._rest:
                self._run_rest(turn)
            return
        if self._play.stoppable:
            self._state = "autoboot"
        self.say(self._countdown)
        if self._play.stoppable:
            deadline = time.monotonic() + _COUNTDOWN_S
            while self._state == "autoboot" and time.monotonic() < deadline:
                time.sleep(0.02)
        with self._lock:
            stopped = self._play.stoppable and self._state != "autoboot"
            if self._turn != turn or stopped:
                return
            self._state = "dead"
        self.say("\r\n")
        self._run_rest(turn)

    def _boot(self):
        self._state = "dead"
        threading.Thread(target=self._run_rest, args=[self._turn], daemon=True).start()

    def _run_rest(self, turn):
        text = self._rest.replace(b"{arguments}", self._arguments().encode())
        ends = {"login": rb"(?:(?<!Last )login|[\r\n]in): $", "shell": rb"# $", "uboot": rb"\n=> $"}
        then = next((state for state, end in ends.items() if re.search(end, text)), "dead")
        self._pour(text, turn, then)

    def _pour(self, text, turn, then="dead"):
        """Say it at the line's rate, to be in that state at its end; False when the power was switched
        meanwhile.
        """
        for at in range(0, len(text), _BYTES_A_PIECE):
            time.sleep(_PIECE_S if at else 0)
            with self._lock:
                if self._turn != turn:
                    return False
                if at + _BYTES_A_PIECE >= len(text):
                    self._state = then
            self.say(text[at : at + _BYTES_A_PIECE])
            self.said_at = time.monotonic()
        return self._turn == turn

    def _arguments(self):
        """What `optargs` is when the boot command has run its scripts."""
        value = self._environment.get("optargs", "")
        for script in self._environment.values():
            if found := _OPTARGS.search(script):
                value = found[1]
        return value.strip()

    def _in_uboot(self, line):
        for name, value in re.findall(r"setenv (\w+) '([^']*)'", line):
            self._environment[name] = value
        if "; printenv; " in line:
            printed = "".join(f"{name}={value}\r\n" for name, value in self._environment.items())
            marker = re.sub(r"echo '(.{4})''(.+?)'.*", r"\1\2", line)
            self.say(f"{marker}\r\n{printed}0\r\n{marker}\r\n=> ")
        else:
            super()._in_uboot(line)

    def _in_shell(self, line):
        if "perf-end" in line:
            self.say(f"{self._answer()}evmperf-end\r\n{self.prompt}")
        else:
            super()._in_shell(line)

    def _run(self, marker, quoted):
        if "echo cmdline:" in quoted:
            self.say(f"{marker}{self._answer()}{marker} 0\r\n{self.prompt}")
        else:
            super()._run(marker, quoted)

    def _answer(self):
        text = (self._play.text + self._play.linux).decode("utf-8", "replace")
        line = re.search(r"(?:append|Kernel command line): ([^\r\n]*)", text)
        system = {"cmdline": line[1] if line else ""}
        if found := re.search(r"root=/dev/(mmcblk(\d)\w*)", system["cmdline"]):
            system |= {"root": found[1], "type": "MMC" if found[2] == "0" else "SD"}
        system["cmdline"] = system["cmdline"].replace("{arguments}", self._arguments())
        return "".join(f"{k}: {v}\r\n" for k, v in {**system, **self._play.system}.items())


@dataclass(frozen=True)
class Outcome:
    """How a replay went: `late_s` is from the board's last byte to the end of the attempt."""

    boot: ObservedBoot
    late_s: float


@contextmanager
def replay_lab(play, board_name, **strategy):
    """A board that replays, and the file that leads to it, with the drivers of a board's file;
    keywords are arguments of its strategy.
    """
    with ExitStack() as stack:
        board = ReplayBoard(play)
        stack.callback(board.close)
        switch = FakeSwitch(board)
        stack.callback(switch.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evmperf-replay-")))
        path = folder / "replay.yaml"
        path.write_text(_file(boards.find(board_name), board.port, switch.port, strategy))
        yield board, path


@contextmanager
def replay_bench(play, board_name, **strategy):
    """A bench on a board that replays; see `replay_lab`."""
    with replay_lab(play, board_name, **strategy) as (board, path), ExitStack() as stack:
        environment = Environment(str(path))
        stack.callback(environment.cleanup)
        yield board, LabgridBench(environment.get_target("main"), boards.load(path))


def _file(source, serial, power, strategy):
    data = yaml.safe_load(source.read_text().replace("!template ", ""))
    main = data["targets"]["main"]
    main["resources"] = console_and_power(serial, power)
    main["drivers"]["NetworkPowerDriver"] = {"delay": 0.0}
    main["drivers"]["K3BootStrategy"] = {**main["drivers"]["K3BootStrategy"], **strategy}
    return yaml.safe_dump(data, sort_keys=False)


def replay(play, board_name, *, goal="booted", arguments="", **strategy):
    """Take a board that replays to `goal` (uboot, booted), without retries."""
    with replay_bench(play, board_name, **strategy) as (board, bench):
        if goal == "booted":
            bench.cold_boot(arguments)
        else:
            bench._strategy.retries = 0
            with suppress(EvmperfError):  # it is in the record of the attempt
                bench.uboot()
        ended = time.monotonic()
        (boot,) = bench.boots()
        return Outcome(boot, max(0.0, ended - board.said_at))
