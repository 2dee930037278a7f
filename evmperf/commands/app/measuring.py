"""One measuring session: the board that is held, the run, its spool, the bench, the runner, and its end."""

from __future__ import annotations

import functools
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evmperf.benchmarks.benchmark import Benchmark, Place
from evmperf.benchmarks.tools import gauge
from evmperf.boards import ends
from evmperf.boards import variation as variations
from evmperf.boards.board import Board
from evmperf.boards.console.powering import Person
from evmperf.commands.app.forecast import Forecast
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.wanted import placement
from evmperf.measure import hostload, provenance
from evmperf.measure.runs.spool import CONSOLE_LOG, Spool, new_run_id
from evmperf.measure.signals import Signals
from evmperf.model import ended, repeats
from evmperf.model.ended import Ended, Ending
from evmperf.model.errors import BoardLost, EvmperfError, Kind, LabError
from evmperf.model.exits import ExitStatus
from evmperf.model.facts import Facts, given_facts
from evmperf.model.replies import WantedSession
from evmperf.model.results import Case, Result
from evmperf.model.run import Run
from evmperf.model.units import seconds
from evmperf.publish.influx import client as influx

if TYPE_CHECKING:
    from evmperf.lab.bench import LabgridBench
    from evmperf.measure.bench import Shell
    from evmperf.measure.runner import Runner

_ANSWER_S = 20.0
"""How long a board may take to say what it has."""


class MeasuringSession:
    """A session as it was asked for; nothing is written or started before `hold` and `open`.

    Raises UsageError for a wrong request.
    """

    def __init__(self, board: Board, asked: WantedSession) -> None:
        self.board = board = ends.checked(board, asked.end)
        self._variation = variations.parse(asked.vary)
        self.request = asked = msgspec.structs.replace(asked, image=self._variation.image or asked.image)
        results = Path(asked.results)
        self.run = Run(
            id=asked.run_id or new_run_id(board.name),
            board=board.name,
            profile=asked.profile or board.options.board.profile,
            kind=asked.run_kind,
            lab=os.environ.get("EVMPERF_LAB", socket.gethostname()),
            place=os.environ.get("LG_PLACE", ""),
            release=asked.release,
            started_ns=time.time_ns(),
            addresses=provenance.addresses(results, os.environ),
            facts=provenance.project(),
        )
        facts = self.run.facts
        facts.board_file, facts.virtual = board.file_name, board.is_virtual
        facts.board_revision = board.options.board.revision
        facts.power = "" if board.power == "switch" else board.power
        facts.variation = list(self._variation.words)
        self.run.facts |= Facts.from_dict(given_facts(asked.fact))
        self.folder = results / self.run.id
        self._repeats = repeats.parse(asked.repeat, asked.boots)
        if asked.reference:
            from evmperf.explain import ranges  # noqa: PLC0415  # for those who have a reference

            self._reference = ranges.read(Path(asked.reference), board.name)
        self.outside: list[str] = []
        """The boots beside the reference of `--reference`, at the end."""
        self._influx = influx.load()
        self.planned: list[tuple[Benchmark, Case]] = []
        """What will be measured, in order."""
        self.results: list[Result] = []
        self.failed_tests: set[str] = set()
        """Tests of a lab's own that failed and measured no case."""
        self.sent = ""
        """How sending to InfluxDB went, in a sentence."""
        self.error: EvmperfError | None = None
        """What ended the session, the lab's first; a board's and a tool's in a case are with the results."""
        self.interrupted = False
        self.signals = Signals()
        self.began = time.monotonic()
        self.claim: Claim | None = None
        """What holds the board for us."""
        self.person = Person()
        """Who works the power, where that is done by hand."""
        self.bench: LabgridBench | None = None
        self._closed = False
        self._kept = 0
        """Results that were not planned."""
        self._sees = board.assumed
        self._absent = 0
        """Planned cases that the board turned out not to have."""
        self._spool: Spool | None = None
        self._runner: Runner | None = None
        self._started_bench: Any = None

    def check_image(self) -> None:
        """Raise UsageError for an image that does not fit the board, LabError for one that cannot be
        fetched. Nothing is held, switched or written yet.
        """
        if self.request.image:
            from evmperf.lab.provision.cache import open_image  # noqa: PLC0415  # requests is slow to import

            open_image(self.request.image, self.board)

    def hold(self, coordinator: str, tell: Callable[[str], None]) -> None:
        """Hold the board, so that nobody else uses it meanwhile.

        `tell` gets what a person should know about that, also later. Raises UsageError for a
        busy or unknown board, LabError when the lab does not answer.
        """
        board = placement(self.board.file, coordinator)
        self.claim = Claim.take(board, self.run.id, wait_s=seconds(self.request.wait), tell=tell)
        self.claim.expect(self.expected_end())
        if board.coordinator:
            # Labgrid's own session in this process goes by the holder's name, too.
            os.environ |= self.claim.environment
            self.run.place = board.place

    def switch_off(self, tell: Callable[[str], None]) -> None:
        """Switch the board off that is held, and let go of it; raises EvmperfError."""
        from evmperf.lab.bench import LabgridBench  # noqa: PLC0415
        from evmperf.lab.target import opened  # noqa: PLC0415  # Labgrid is slow to import

        assert self.claim is not None
        try:
            with opened(self.board, self.claim, tell) as target, self.signals.held():
                LabgridBench(target, self.board, check=self.claim.check).off()
                tell(f"nothing is left to measure: {self.board.name} is switched off")
        finally:
            self.let_go()

    def expected_end(self) -> float:
        """When all that is planned should be measured, in seconds since the epoch."""
        return time.time() + self.forecast.rest_s(len(self.results))

    @functools.cached_property
    def forecast(self) -> Forecast:
        """How long what is planned takes; asked for when that is known."""
        return Forecast(self.planned, self.board, self.run.profile, self._repeats)

    def learn(self, number: int, taken_s: float) -> None:
        """A planned case has taken so long: forecast the others by that."""
        if self.bench and self.bench.power_cycles and self._runner and self._runner.boot_s:
            self.forecast.boot_s = self._runner.boot_s / self.bench.power_cycles
        self.forecast.learn(number, taken_s)

    @property
    def activity(self) -> str:
        """What happens to the board right now."""
        return (self.bench.activity if self.bench else "") or "measuring"

    @property
    def lost(self) -> str:
        """Why the board is ours no more, "" while it is."""
        return self.claim.lost if self.claim else ""

    def open(self, target: Any, progress: Callable[[str], None]) -> None:
        """Start what has to run, open the spool, and get the bench ready; raises LabError, UsageError.

        `progress` is told each step of building a virtual EVM that is not built yet.
        """
        # The report's numpy, as a Ctrl-C within its import ends its use in a process.
        import numpy as np  # noqa: F401, PLC0415

        from evmperf.lab.bench import LabgridBench  # noqa: PLC0415  # Labgrid is slow to import
        from evmperf.measure.runner import Runner  # noqa: PLC0415  # not needed to collect tests

        self._spool = spool = Spool(self.folder.parent, self.run)
        spool.hold()
        self._start_virtual(progress)
        assert self.claim is not None
        self.bench = LabgridBench(target, self.board, self._variation, self.claim.check, self.person)
        self.claim.on_lost = self.bench.lose
        self.claim.check()
        self.bench.record_console(spool.folder / CONSOLE_LOG)
        ways = [way for benchmark, _ in self.planned for way in (benchmark, benchmark.ti) if way]
        tools = [tool for way in ways for tool in way.tools_on(self.board)]
        self._provision(target, progress)
        self._runner = Runner(
            self.bench,
            spool,
            self.run.profile,
            tools,
            self.run.release,
            variation=self._variation,
            repeats=self._repeats,
            looks=True,
            tool=self.request.tool,
            perf=self.request.perf,
        )

    def _provision(self, target: Any, progress: Callable[[str], None]) -> None:
        """Put the image on the board, if one is asked for; its release is the run's."""
        from evmperf.lab.provision import installation  # noqa: PLC0415  # slow as Labgrid

        assert self.bench is not None
        if self.request.image:
            work = installation.Installation(target, self.board, self.bench, tell=progress)
            outcome = work.install(self.request.image)
            self.run.facts.provisioned = outcome.facts
            self.run.release = self.run.release or outcome.image.identity.release
        else:
            installation.guard(target, self.board, self.bench)
        self.bench.boots()  # how long it took to boot is for a benchmark to say

    def absent(self, benchmark: Benchmark, case: Case) -> str:
        """Why the board does not have a planned case, "" if it has. A board whose file names no feature shows
        what it has once it runs Linux. Raises LabError.
        """
        if not self._sees or benchmark.place is Place.BOOT:
            return ""
        self._see()
        reason = benchmark.unsupported(self.board, case)
        if not reason and not benchmark.ti:
            assert self._runner is not None
            lacking = self._runner.lacking(benchmark)
            reason = f"{', '.join(lacking)} is not on the board's PATH" if lacking else ""
        self._absent += bool(reason)
        return reason

    def _see(self) -> None:
        """Ask the board for its machine and disks."""
        from evmperf.lab.desk import identity  # noqa: PLC0415  # for boards that nobody has described

        if not self.board.assumed:
            return
        shell = self.shell()
        answers = (shell.run(line, _ANSWER_S).text for line in identity.question(()).splitlines())
        seen = identity.answer("\n".join(answers))
        desk = {"machine": gauge.machine(seen.machine), "disks": list(seen.disks)}
        board = {"title": seen.model} if seen.model else {}
        self.board = self.board.shown({"desk": desk, "board": board})
        assert self.bench is not None
        self.bench.board = self.board
        self.__dict__.pop("forecast", None)  # what could not be declared before can be now

    def measure(self, benchmark: Benchmark, case: Case) -> Result:
        """Measure one case; raises LabError when the lab is broken."""
        assert self._runner is not None
        result = self._runner.measure(benchmark, case)
        self.results.append(result)
        return result

    def keep(self, result: Result) -> None:
        """Keep a result that somebody else measured on this board; raises LabError."""
        assert self._spool is not None
        self._spool.append(result)
        self.results.append(result)
        self._kept += 1

    def shell(self) -> Shell:
        """A root shell in Linux, whose facts are in the run; boots the board if necessary."""
        assert self._runner is not None
        return self._runner.linux()

    def close(self) -> None:
        """Switch the board off unless it is to stay on, and stop what `open` started; may be called
        again. A signal ends what may be left out, never the power switch.
        """
        if self._closed:
            return
        self._closed = True
        with self.signals.held():
            try:
                if self._runner:
                    with self.signals.skippable():
                        self._runner.close(brief=bool(self.signals.by))
                if self.bench:
                    self.bench.close()
                # Nobody is asked to pull a plug at the end, and what was found on stays on.
                by_switch = self.board.power == "switch" and not self.request.keep_on
                if self.bench and by_switch and not self.lost:
                    self.bench.off()
            except EvmperfError as error:
                self.fail(LabError(str(error)))
            finally:
                if self._started_bench and not self.lost:
                    self._started_bench.stop()
                self.let_go()

    def let_go(self) -> None:
        """Hold the board no more; may be called again."""
        if self.claim:
            self.claim.close()

    def judge_boots(self) -> ExitStatus | None:
        """The exit status by the reference of boots, None without one."""
        if not (self.request.reference and self._spool):
            return None
        from evmperf.explain import ranges  # noqa: PLC0415  # for those who have a reference

        try:
            self.outside, status = ranges.held(self.folder, self.run, self._reference)
        except EvmperfError as error:  # the run still has to be ended
            self.outside = [f"{self.request.reference}: not compared: {error}"]
            return ExitStatus.UNDECIDED
        return status

    def finish(self, exit_status: int) -> None:
        """Write how the run ended; a spool that was never opened stays unwritten."""
        self.run.ended_ns = time.time_ns()
        self.run.exit_status = exit_status
        end = self.ended()
        self.run.outcome, self.run.ending = end.sentence, end.ending
        if self.bench:
            self.run.facts.attempts = self.bench.power_cycles
        self.run.facts.lost = self.lost
        if self.interrupted and self.signals.by:
            self.run.facts.interrupted_by = self.signals.by
        if self._runner and self._runner.broken:
            self.run.facts.broken = self._runner.broken
        if self._spool:
            try:
                self._spool.save()
            except LabError as error:
                self.fail(error)
            self._spool.release()
        if self._influx and self._spool and not self.signals.hurried:
            from evmperf.publish.influx import push  # noqa: PLC0415  # for those who have one

            with self.signals.skippable():
                self.sent = push.end(self.folder, self._influx)

    def write_report(self) -> None:
        """Write the page of the run, if there is a run; raises LabError when the disk is full."""
        if self._runner and not self.signals.hurried:
            from evmperf.commands.app import why  # noqa: PLC0415  # not needed to collect tests

            why.report(self.folder)

    def busy_s(self) -> float:
        """Seconds that the board spent on benchmarks' commands and on booting."""
        tools = sum(result.tool_s for result in self.results if result.driver != "boot")
        return tools + (self._runner.boot_s if self._runner else 0.0)

    def fail(self, error: EvmperfError) -> str:
        """Take an error for what ends the session; returns why it ends, in words."""
        if isinstance(error, BoardLost):
            return f"the board was lost: {error}"  # the claim has it
        if not isinstance(self.error, LabError):
            self.error = error
        # Measuring records what boards and tools do wrong: any other is of the call, or the image.
        what = "the lab is broken" if isinstance(error, LabError) else "there is nothing to measure"
        return f"{what}: {error}"

    def _cut(self) -> tuple[Ending, str, str] | None:
        """What cut the session, in words, and the reason; None where nothing did."""
        if self.lost:
            return Ending.LOST, "The board was lost", self.lost
        if isinstance(self.error, LabError):
            return Ending.LAB, "The lab is broken", str(self.error)
        if self.error:
            wrong = Ending.WRONG if self.error.kind is Kind.USAGE else Ending.BOARD
            return wrong, "Nothing was measured", str(self.error)
        by = f" by {self.signals.by}" if self.signals.by not in ("", "SIGINT") else ""
        return (Ending.CUT, f"Interrupted{by}", "") if self.interrupted else None

    def ended(self) -> Ended:
        """How it ended."""
        cut = self._cut()
        planned = max(len(self.planned) - self._absent + self._kept, len(self.results))
        broken = bool(self._runner and self._runner.broken)
        return ended.of(self.board.name, self.results, planned, cut, len(self.failed_tests), broken=broken)

    @property
    def status(self) -> ExitStatus | None:
        """The exit status that the end has, None for that of the cases; pytest has its own for Ctrl-C."""
        cut = self._cut()
        return Ended(cut[0], "").status if cut and cut[0] is not Ending.CUT else None

    def _start_virtual(self, progress: Callable[[str], None]) -> None:
        from evmperf.lab.target import lab_of  # noqa: PLC0415  # Labgrid is slow to import

        self._started_bench = lab_of(self.board, progress)
        if self.board.is_virtual and (slowness := hostload.slowness()) >= hostload.BUSY:
            progress(
                f"this host is busy: its virtual EVM gets {slowness:.0f} times as long for a boot or command"
            )
