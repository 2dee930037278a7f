"""Looking at the board around cases."""

import shlex
from dataclasses import replace

from evmperf.boards.board import Board
from evmperf.measure import hostload
from evmperf.measure.bench import Clock, Shell, Steps
from evmperf.measure.state import look
from evmperf.measure.state.look import BoardLook
from evmperf.model.errors import ToolError
from evmperf.model.state import State

_GRAIN_S = 0.02
"""How far off the difference of two uptimes is at most: the kernel prints hundredths."""
LOOK, STATE = "look", "state"
"""Labels of the step that writes a look's text, and, before the driver's name, of a look."""


class Around:
    """Looks at the board, and at its tester where it has a part, before and after each case; the look
    after one is the look before the next.

    A look that fails costs no case: the state says why it is missing. `late_s` is how late a time of
    `clock` is at most, that of a log of another host.
    """

    def __init__(self, board: Board, steps: Steps, clock: Clock, late_s: float = 0.0) -> None:
        self._board = board
        self._steps = steps
        self._clock = clock
        self._late_s = late_s
        self._shell: Shell | None = None
        self._scripted: set[str] = set()
        """Drivers whose look is a script on the board."""
        self._first = BoardLook()
        """Since when the board's clock is held against the lab's."""
        self._driver = ""
        self._tester: tuple[Shell, str] | None = None
        self._last: BoardLook | None = None
        """The last look at `_driver`, where nothing has happened since."""
        self._missing = ""
        self._log: dict[str, tuple[str, ...]] = {}
        """By driver: what the kernel has said of it since the boot."""

    def forget(self) -> None:
        """The board did something that nobody looks at: sleeping, booting."""
        self._shell = self._last = None

    def before(self, shell: Shell, driver: str, tester: tuple[Shell, str] | None = None) -> None:
        """Look, unless just done; `tester`: its shell and our folder. Raises BoardError or LabError."""
        if shell is self._shell and (driver, tester) == (self._driver, self._tester) and self._last:
            return
        self._tester = tester
        if shell is not self._shell:
            self._scripted, self._first, self._shell, self._log = set(), BoardLook(), shell, {}
        self._driver = driver
        self._last = self._look(shell)

    def cut(self, why: str) -> State | None:
        """The state before a case whose board or lab failed in it, which nobody can look at now."""
        before, self._last = self._last, None
        return State(shown=before.shown, missing=why) if before else None

    def after(self, shell: Shell) -> State:
        """Look again; what the case did. Raises BoardError or LabError."""
        before, self._last = self._last, None
        if before is None or shell is not self._shell:
            return State(missing=self._missing or "the board was booted during the case")
        self._last = self._look(shell)
        if self._last is None:
            return State(shown=before.shown, missing=self._missing)
        return look.between(before, self._last, rate(self._first, self._last))

    def _look(self, shell: Shell) -> BoardLook | None:
        path = f"$F/look_{self._driver}"
        try:
            if self._driver not in self._scripted:
                text = shlex.quote(look.script(self._board, self._driver))
                # Apart from the look: until it is there, nobody knows when the clock was read.
                self._steps.run(shell, f"printf %s {text} >{path}", look.SECONDS, quiet=True, label=LOOK)
            began = self._clock.monotonic()
            done = self._steps.run(shell, f". {path}", look.SECONDS, label=f"{STATE} {self._driver}")
        except ToolError as error:
            self._missing = str(error)
            return None
        self._scripted.add(self._driver)
        seen = look.parse(done.files.get(look.FILE, ""))
        self._log[self._driver] = (*self._log.get(self._driver, ()), *seen.log)
        # What this host left to a virtual EVM that it runs.
        port = (
            self._board.resources.get("NetworkSerialPort", {}).get("port") if self._board.is_virtual else None
        )
        host = hostload.counters(port) if isinstance(port, int) and not self._late_s else {}
        took_s = done.busy_s
        if seen.read_s is not None and done.uptime_s is not None:
            took_s = seen.read_s - done.uptime_s
        seen = replace(
            seen,
            log=self._log[self._driver],
            # The same work each time: what it takes tells how fast the whole machine is.
            shown={**seen.shown, "look_ms": round(took_s * 1000)},
            counters={**seen.counters, **host},
            earliest_s=began - self._late_s,
            latest_s=self._clock.monotonic(),
        )
        if self._first.uptime_s is None:
            self._first = seen
        return self._with_tester(seen)

    def _with_tester(self, seen: BoardLook) -> BoardLook:
        text = look.script_beside(self._board, self._driver) if self._tester else ""
        if not (text and self._tester):
            return seen
        shell, folder = self._tester
        try:
            files = self._steps.run(shell, text, look.SECONDS, folder=folder, label=STATE).files
        except ToolError as error:
            self._missing = str(error)
            return seen
        beside = look.parse(files.get(look.FILE, ""))
        return replace(
            seen,
            shown={**seen.shown, **{f"tester.{name}": value for name, value in beside.shown.items()}},
            counters={**seen.counters, **{f"tester.{name}": n for name, n in beside.counters.items()}},
        )


def rate(first: BoardLook, now: BoardLook) -> tuple[float, float] | None:
    """Seconds of the board per second of the lab between two looks, at least and at most; or None."""
    if now.uptime_s is None or first.uptime_s is None or now.earliest_s <= first.latest_s:
        return None
    board_s = now.uptime_s - first.uptime_s
    return (
        round((board_s - _GRAIN_S) / (now.latest_s - first.earliest_s), 4),
        round((board_s + _GRAIN_S) / (now.earliest_s - first.latest_s), 4),
    )
