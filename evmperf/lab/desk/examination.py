"""The checks of a board and its lab in their order; each reports its finding, and the next follows."""

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pexpect import TIMEOUT

from evmperf.boards.board import Board
from evmperf.boards.console import booted
from evmperf.boards.console.booted import BootedSystem, WrongBoot
from evmperf.boards.console.marks import Phase
from evmperf.lab import boardcheck
from evmperf.lab.bench import LabgridBench
from evmperf.lab.desk import host, software
from evmperf.lab.desk.finding import CheckFinding, CheckOutcome, Noted, checked
from evmperf.lab.desk.ports import usb_ports
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.places import connect
from evmperf.lab.keeping.wanted import Wanted, placement
from evmperf.lab.sshlink import SshFiles
from evmperf.lab.target import opened
from evmperf.lab.tester import VIRTUAL, open_tester
from evmperf.measure import shellstep
from evmperf.measure.bench import Shell, ShellReply
from evmperf.measure.runs.spool import new_run_id
from evmperf.measure.signals import listening
from evmperf.model.errors import BoardError, EvmperfError, LabError, ToolError, UsageError, one_line
from evmperf.model.places import STEP_FOLDER
from evmperf.model.records import BootMark

_QUIET_S = 0.5
_OFF_S = 3.0
"""How long a board may go on talking when its power is gone."""
_ANSWER_S = 1.0
_COMMAND_S = 60.0
_FOLDER = f"{STEP_FOLDER}-doctor"
"""On the board; a session that measures there keeps its own."""
_GARBAGE = 8
"""Characters that a healthy line may show when the power comes."""
_READABLE = re.compile(rb"[\x20-\x7e]{2,}")
_LOADERS = {Phase.BL1, Phase.SPL_BANNER, Phase.TF_A, Phase.A53_SPL, Phase.UBOOT_BANNER}
_WRONG_OUTLET = (
    "the outlet is another board's, or the board is fed through a USB cable; check which outlet it hangs on"
)
_OTHER_UART = "is this another UART of the board? docs/day-one.md says which is the console"


@dataclass(frozen=True)
class _Step:
    name: str
    needs: tuple[str, ...]
    check: Callable[[], str]
    """Returns the sentence of a good one; raises EvmperfError or Noted."""


@dataclass(eq=False)
class Examination:
    """One look at a board and its lab. Iterate over `findings` once; the board is off afterwards.

    Nothing is written to the board's disks or environment, but a script to /tmp of its Linux.
    `console` is where its console is recorded, `coordinator` overrides what the file says.
    """

    board: Board
    coordinator: str = ""
    console: Path | None = None
    tell: Callable[[str], None] = lambda line: None
    _closing: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, init=False)
    _placement: Wanted | None = field(default=None, init=False)
    _target: Any = field(default=None, init=False)
    _bench: LabgridBench = field(init=False)
    _strategy: Any = field(default=None, init=False)
    _shell: Shell = field(init=False)
    _marks: Mapping[Phase, BootMark] = field(default_factory=dict, init=False)
    _failed: EvmperfError | None = field(default=None, init=False)
    """Why U-Boot's prompt was not reached."""
    _wrong: WrongBoot | None = field(default=None, init=False)

    def findings(self) -> Iterator[CheckFinding]:
        """The findings one by one, as they come."""
        good: set[str] = set()
        with self._closing:
            for step in self._steps():
                if lacks := next((name for name in step.needs if name not in good), ""):
                    yield CheckFinding(step.name, CheckOutcome.UNCHECKED, f"not checked: it needs {lacks}")
                    continue
                finding = checked(step.name, step.check)
                if finding.outcome is not CheckOutcome.BAD:
                    good.add(step.name)
                yield finding

    def _steps(self) -> list[_Step]:
        board, switches = self.board, self.board.has_console and self.board.power != "none"
        held = [
            _Step("board file", (), self._board_file),
            _Step("coordinator", (), self._coordinator),
            _Step("place", ("board file", "coordinator"), self._place),
            *([_Step("console", ("place",), self._console)] if board.has_console else []),
        ]
        boot = [
            _Step("power switch", ("console",), self._power),
            _Step("U-Boot", ("power switch",), self._at_uboot),
            _Step("Linux", ("U-Boot",), self._linux),
            _Step("command line", ("Linux",), self._command_line),
        ]
        # Nothing is switched, so what needs a boot is left out, and Linux is looked at as it is.
        found = [_Step("Linux", ("console" if board.has_console else "place",), self._as_found)]
        scratch = software.scratch_checks(board).items()
        checks = [
            *held,
            *(boot if switches else found),
            _Step("root medium", ("Linux",), self._root),
            _Step("files", ("Linux",), self._files),
            *(
                _Step(f"scratch {name}", ("Linux",), partial(self._scratch, name, say))
                for name, say in scratch
            ),
            _Step("tools", ("Linux",), self._tools),
        ]
        if software.tools_beside(board):
            checks.append(_Step("tester", ("place",) if board.tester == VIRTUAL else (), self._tester))
        if board.options.power.supply or ("power" in board.features and "power" not in board.options.absent):
            checks.append(_Step("meter", ("place",), self._meter))
        return [*checks, _Step("clock", (), host.clock), _Step("real time", (), host.real_time)]

    def _board_file(self) -> str:
        checked = boardcheck.check(self.board)
        if checked.mistakes:
            raise UsageError("; ".join(checked.mistakes))
        if checked.remarks:
            raise Noted("; ".join(checked.remarks))
        return f"{self.board.file_name} is of {self.board.name}"

    def _coordinator(self) -> str:
        self._placement = placement(self.board.file, self.coordinator)
        if not self._placement.coordinator:
            return "none needed: the board file says where the board is"
        connect(self._placement, Claim(self._placement, new_run_id("doctor")).environment)
        return f"{self._placement.coordinator} answers"

    def _place(self) -> str:
        assert self._placement
        if "$" in self._placement.place:
            raise UsageError(
                f"{self.board.file_name} takes the board's place from the environment: set "
                f"LG_PLACE to one of `labgrid-client places`"
            )
        claim = Claim.take(self._placement, "doctor", tell=self.tell)
        self._closing.callback(claim.close)
        self._target = self._closing.enter_context(opened(self.board, claim, self.tell))
        self._bench = LabgridBench(self._target, self.board, check=claim.check)
        self._closing.callback(self._leave)
        claim.on_lost = self._bench.lose
        if self.console:
            self._bench.record_console(self.console)
        self._strategy = self._target.get_strategy()
        self._strategy.retries = 0
        return f"{claim.board.place} is held by {claim.name} for these checks"

    def _leave(self) -> None:
        """Switch the board off, if it was switched on."""
        with contextlib.suppress(EvmperfError), listening(lambda *_: None):
            if self._bench.power_cycles and self.board.power == "switch":
                self._bench.off()
        self._bench.close()

    def _console(self) -> str:
        console = self._strategy.console
        try:
            self._strategy.target.activate(console)
        except EvmperfError:
            raise
        except Exception as error:  # noqa: BLE001  # resources that are away raise all kinds
            raise LabError(
                f"the console cannot be opened ({one_line(error)}): check the exporter, the adapter "
                f"and other programs that use it"
            ) from None
        port = console.port
        where = f"{port.host}:{port.port}" if hasattr(port, "host") else str(port.port)
        usb = next((one.usb for one in usb_ports() if one.path == str(Path(where).resolve())), "")
        return f"{where} is open at {port.speed} baud{f' ({usb})' if usb else ''}"

    def _as_found(self) -> str:
        self._shell = self._bench.shell()
        shellstep.install(self._shell, _FOLDER)
        return "is running and is checked as found: nothing is switched"

    def _power(self) -> str:
        switched = self.board.power != "reset"
        if switched:
            self._bench.off()
            self._see_it_off()
        try:
            self._bench.uboot()
        except EvmperfError as error:
            self._failed = error
        boot = next(reversed(self._bench.boots()), None)
        self._marks = dict(boot.marks) if boot else {}
        if self._failed and (not boot or not boot.marks or boot.phase in ("power switch", "console")):
            raise self._failed
        if not switched:
            return "is reset, not switched: boots are warm"
        power_on, first = (self._marks.get(p) for p in (Phase.POWER_ON, Phase.FIRST_OUTPUT))
        if first is None or power_on is None:
            raise self._nothing_readable()
        seconds = (first.mono_ns - power_on.mono_ns) / 1e9
        return f"silent when off; the console prints {seconds:.1f} s after power-on"

    def _see_it_off(self) -> None:
        """Raise LabError when a board that is said to be off talks or answers."""
        console = self._strategy.console
        began = time.monotonic()
        with contextlib.suppress(TIMEOUT):
            while time.monotonic() - began < _OFF_S:
                console.await_data(_QUIET_S)
            raise LabError(f"the switch says off, but the console still prints: {_WRONG_OUTLET}")
        # Not a newline: where the board is on after all, U-Boot would repeat its last command.
        console.write(b"\x03")
        with contextlib.suppress(TIMEOUT):
            if _READABLE.search(console.await_data(_ANSWER_S)):
                raise LabError(f"the switch says off, but the board answers: {_WRONG_OUTLET}")

    def _nothing_readable(self) -> LabError:
        output = self._strategy.console.output()
        if len(output) > _GARBAGE:
            return LabError(
                f"the console speaks after power-on, but nothing readable ({output[:20]!r}): is its "
                f"speed right ({self._strategy.console.port.speed} baud)?"
            )
        return LabError(
            f"the console is silent after power-on: check the outlet, the board's supply and "
            f"the cable; {_OTHER_UART}"
        )

    def _at_uboot(self) -> str:
        if self._failed is None:
            banner = self._marks.get(Phase.UBOOT_BANNER)
            return f"stopped at its prompt ({banner.text.strip() if banner else 'no banner'})"
        if _LOADERS & set(self._marks) or getattr(self._failed, "permanent", False):
            raise self._failed
        raise BoardError(f"{self._failed}; no boot loader printed a line: {_OTHER_UART}")

    def _linux(self) -> str:
        self._strategy.kernel_arguments = software.WORD
        try:
            self._shell = self._bench.shell()
        except WrongBoot as error:
            self._wrong = error
            # It is Linux all the same: the rest can be checked.
            self._bench.force("shell")
            self._shell = self._bench.shell()
        shellstep.install(self._shell, _FOLDER)
        return "logged in as root"

    def _command_line(self) -> str:
        if self._wrong and not self._wrong.medium:
            raise self._wrong
        return f"kernel arguments arrive ({self._booted().arguments})"

    def _booted(self) -> BootedSystem:
        return booted.answered(self._shell.run(booted.QUESTION, _COMMAND_S).text)

    def _root(self) -> str:
        medium = self._strategy.medium or self.board.options.boot.medium
        system = self._booted()
        pattern = self._strategy.roots.get(medium)
        if not pattern:
            raise Noted(f"not checked: `roots` of the strategy has no {medium}; it is {system.root}")
        if complaint := booted.complaint(medium, pattern, "", system, ()):
            raise complaint
        return f"{medium}: {system.root}"

    def _files(self) -> str:
        files = self._shell.files
        if self.board.has_ssh and not self.board.has_console:
            return "over SSH, like everything else"
        if not isinstance(files, SshFiles):
            return "over the console: the board file has no SSHDriver"
        if files.get("/proc/version") is None:
            raise Noted(f"over the console: SSH to the board fails: {files.broken}")
        return "over SSH, those of more than 4 KiB"

    def _run(self, command: str) -> ShellReply:
        done = shellstep.run(self._shell, command, _COMMAND_S, folder=_FOLDER, label="doctor")
        return ShellReply(done.status, done.files.get(shellstep.LOG, ""))

    def _scratch(self, driver: str, check: str) -> str:
        reply = self._run(check)
        if reply.status:
            raise LabError((reply.text.strip().splitlines() or [f"exit status {reply.status}"])[-1])
        return f"{self.board.text(driver, 'scratch')} may be overwritten"

    def _tools(self) -> str:
        users = software.tools_on(self.board)
        if lacking := software.missing(users, self._run):
            raise ToolError(
                f"not on the board: {lacking}; use an image with them, or give the reason in options.absent"
            )
        return f"all {len(users)} programs are there"

    def _tester(self) -> str:
        users = software.tools_beside(self.board)
        if not self.board.tester:
            raise Noted(
                f"none: {len({n for names in users.values() for n in names})} benchmarks are "
                f"skipped; set EVMPERF_TESTER to its SSH name (docs/lab-set-up.md)"
            )
        with contextlib.closing(open_tester(self.board, self._target)) as tester:
            if lacking := software.missing(users, lambda command: tester.run(command, _COMMAND_S)):
                raise LabError(f"not on the tester: {lacking}; install them there")
        return f"{self.board.tester}: all {len(users)} programs are there"

    def _meter(self) -> str:
        power = self.board.options.power
        rails = tuple(dict.fromkeys((*power.rails, *power.supply)))
        meter = self._bench.meter()
        identity = meter.identity()
        meter.check(rails)
        return f"{identity} reads {len(rails)} rails"
