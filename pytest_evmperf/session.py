"""One measuring session: the run, its spool, the bench and the runner, kept on pytest's config."""

from __future__ import annotations

import functools
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.boards import variation as variations
from evmperf.boards.board import Board
from evmperf.boards.variation import Variation
from evmperf.boards.vocabulary import CABLED
from evmperf.console.person import Person
from evmperf.influx import config as influx_config
from evmperf.keeping.claim import Claim
from evmperf.keeping.wanted import wanted
from evmperf.measure import addresses, provenance
from evmperf.measure.signals import Signals
from evmperf.model import ended, repeats
from evmperf.model.ended import Ended, Ending
from evmperf.model.errors import BoardLost, EvmperfError, LabError, UsageError
from evmperf.model.facts import Facts
from evmperf.model.outlets import plain
from evmperf.model.repeats import Repeats
from evmperf.model.results import Case, Result
from evmperf.model.run import Run
from evmperf.model.units import seconds
from evmperf.provision.cache import open_image
from evmperf.runs.spool import Spool, new_run_id
from pytest_evmperf.forecast import Forecast

if TYPE_CHECKING:
    from evmperf.influx.push import Sender
    from evmperf.lab.bench import LabgridBench
    from evmperf.measure.runner import Runner

SEND_AT_MOST_S = 20.0
"""How long the end of a session waits for InfluxDB."""

_TAKER_S = 5.0
"""How long the end of a session waits for the name of who has taken the board."""

SESSION: pytest.StashKey[Session] = pytest.StashKey()


@dataclass
class Session:
    """What one call of pytest measures. `lab_failure` is why the lab is broken, "" while it is not.

    `planned` holds the cases that will be measured, in order; `results` their outcomes.
    """

    board: Board
    profile: str
    folder: Path
    run: Run
    planned: list[tuple[Benchmark, Case]] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    image: str = ""
    """What is put on the board before it is measured, "" for what is there."""
    netboot: dict[str, str] = field(default_factory=dict)
    """What is booted over the network: files by kernel, dtb or ramdisk."""
    influx: influx_config.Config | None = None
    sent: str = ""
    """How sending to InfluxDB went, in a sentence."""
    lab_failure: str = ""
    not_begun: str = ""
    """Why nothing was measured on a lab that works: an image that does not boot or does not fit."""
    wrong_call: bool = False
    """Whether the reason is a wrong option, file or board file."""
    interrupted: bool = False
    signals: Signals = field(default_factory=Signals)
    closed: bool = False
    variation: Variation = field(default_factory=Variation)
    repeats: Repeats = field(default_factory=Repeats)
    """How often each case is measured."""
    began: float = field(default_factory=time.monotonic)
    claim: Claim | None = None
    """What holds the board for us."""
    gave_way: str = ""
    """Who asked for the board, when the session ended for that."""
    wait_s: float = 0.0
    """How long to wait for a board that others hold, in seconds."""
    grace_s: float = 0.0
    """How long to leave a board to who takes it away from its holder meanwhile, in seconds."""
    person: Person = field(default_factory=Person)
    """Who works the power, where that is done by hand."""
    bench: LabgridBench | None = None
    _spool: Spool | None = None
    _runner: Runner | None = None
    _started_bench: Any = None
    _sender: Sender | None = None

    @classmethod
    def create(cls, board: Board, option: Any) -> Session:
        """A session for `board` by pytest's options; nothing is written or started yet. Raises UsageError."""
        variation = variations.parse(option.vary)
        vars(option).update(variation.provisioned)
        run = Run(
            id=option.run_id or new_run_id(board.name),
            board=board.name,
            profile=option.profile or board.options.board.profile,
            kind=option.run_kind,
            lab=os.environ.get("EVMPERF_LAB", socket.gethostname()),
            place=os.environ.get("LG_PLACE", ""),
            release=option.release,
            started_ns=time.time_ns(),
            addresses=addresses.of_run(option.results, os.environ),
            facts=provenance.project(),
        )
        facts = run.facts
        facts.board_file, facts.virtual = board.file_name, board.is_virtual
        facts.board_revision = board.options.board.revision
        facts.power = "" if board.power == "switch" else board.power
        facts.variation = list(variation.words)
        run.facts |= Facts.from_dict(dict(word.split("=", 1) for word in option.fact if "=" in word))
        netboot = {part: getattr(option, part) for part in ("kernel", "dtb", "ramdisk")}
        return cls(
            board,
            run.profile,
            option.results / run.id,
            run,
            image=option.image,
            netboot={part: file for part, file in netboot.items() if file},
            influx=influx_config.load(os.environ),
            variation=variation,
            repeats=repeats.parse(option.repeat, option.boots),
            wait_s=seconds(option.wait),
            grace_s=seconds(option.grace),
        )

    def unsupported(self, benchmark: Benchmark, case: Case) -> str:
        """Why a case is not measured in this session, "" if it is."""
        if self.netboot and benchmark.driver in CABLED:
            return "booted over the network: no figures of the Ethernet port in use"
        return benchmark.unsupported(self.board, case)

    def check_image(self) -> None:
        """Raise UsageError for an image that does not fit the board, LabError for one that cannot be
        fetched. Nothing is held, switched or written yet.
        """
        if self.image:
            open_image(self.image, self.board)

    def hold(self, coordinator: str, tell: Callable[[str], None]) -> None:
        """Hold the board, so that nobody else uses it meanwhile.

        `tell` gets what a person should know about that, also later. Raises UsageError for a
        busy or unknown board, LabError when the lab does not answer.
        """
        board = wanted(self.board.file, coordinator)
        self.claim = Claim.take(
            board, self.run.id, until=self.expected_end(), wait_s=self.wait_s, grace_s=self.grace_s, tell=tell
        )
        # A night's hold was for the whole night, and one that was waited for begins now.
        self.claim.doing("starting", self.expected_end())
        self.claim.on_asked = lambda message: tell(f"asked for {board.place}: {message}")
        if board.coordinator:
            # Labgrid's own session in this process goes by the holder's name, too.
            os.environ["LG_HOSTNAME"], os.environ["LG_USERNAME"] = self.claim.host, self.claim.user
            self.run.place = board.place

    def switch_off(self, coordinator: str, tell: Callable[[str], None]) -> None:
        """Hold the board, switch it off, and let go of it; raises EvmperfError."""
        from evmperf.doctor.target import opened  # noqa: PLC0415  # Labgrid is slow to import
        from evmperf.lab.bench import LabgridBench  # noqa: PLC0415

        self.hold(coordinator, tell)
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
        return Forecast(self.planned, self.board, self.profile, self.repeats)

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
        """Start what has to run, open the spool, and get the bench ready; raises LabError.

        `progress` is told each step of building a virtual EVM that is not built yet.
        """
        from evmperf.lab.bench import LabgridBench  # noqa: PLC0415  # Labgrid is slow to import
        from evmperf.measure.runner import Runner  # noqa: PLC0415  # not needed to collect tests

        self._spool = spool = Spool(self.folder.parent, self.run)
        spool.hold()
        if self.influx:
            from evmperf.influx.push import Sender  # noqa: PLC0415  # for those who have one

            self._sender = Sender(self.influx, self.folder)
            spool.on_change = self._sender.wake
        self._start_virtual(progress)
        assert self.claim is not None
        self.bench = LabgridBench(target, self.board, self.variation, self.claim.check, self.person)
        self.claim.on_lost = self.bench.lose
        self.claim.check()
        self.bench.record_console(spool.console_log)
        tools = [tool for benchmark, _ in self.planned for tool in benchmark.tools_on(self.board)]
        self._provision(target, progress)
        self._runner = Runner(
            self.bench,
            spool,
            self.profile,
            tools,
            self.run.release,
            variation=self.variation,
            repeats=self.repeats,
            looks=True,
        )

    def _provision(self, target: Any, progress: Callable[[str], None]) -> None:
        """Put the image on the board, if one is asked for; its release is the run's."""
        from evmperf.provision import installation, netboot  # noqa: PLC0415  # slow as Labgrid

        assert self.bench is not None
        if self.image:
            work = installation.Installation(target, self.board, self.bench, tell=progress)
            outcome = work.install(self.image)
            self.run.facts.provisioned = outcome.facts
            self.run.release = self.run.release or outcome.image.identity.release
        else:
            installation.guard(target, self.board, self.bench)
        if self.netboot:
            started = netboot.start(target, self.board, self.bench, self.netboot)
            self.run.facts.netboot = started
            progress(f"booted over the network: {', '.join(started)}")
        self.bench.boots()  # how long it took to boot is for a benchmark to say

    def measure(self, benchmark: Benchmark, case: Case) -> Result:
        """Measure one case; raises LabError when the lab is broken."""
        assert self._runner is not None
        result = self._runner.measure(benchmark, case)
        self.results.append(result)
        return result

    def close(self, *, keep_on: bool) -> None:
        """Switch the board off unless it is to stay on, and stop what `open` started; may be called
        again. A signal ends what may be left out, never the power switch.
        """
        if self.closed:
            return
        self.closed = True
        with self.signals.held():
            self._close(keep_on)

    def _close(self, keep_on: bool) -> None:
        try:
            if self._runner:
                with self.signals.skippable():
                    self._runner.close(brief=bool(self.signals.by))
            if self.bench:
                self.bench.close()
            # Nobody is asked to pull a plug at the end, and what was found on stays on.
            if self.bench and not keep_on and not self.lost and self.board.power == "switch":
                self.bench.off()
        except BoardLost:
            pass  # `lost` has it
        except EvmperfError as error:
            self.lab_failure = self.lab_failure or str(error)
        finally:
            if self._started_bench and not self.lost:
                self._started_bench.stop()
            self.await_taker()  # while there is a keeper to say it
            self.let_go()

    def let_go(self) -> None:
        """Hold the board no more; may be called again."""
        if self.claim:
            self.claim.release()

    def await_taker(self) -> None:
        """Who has taken a board, Labgrid says a moment after it is gone."""
        if self.claim:
            self.claim.await_taker(_TAKER_S)

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
                self.lab_failure = self.lab_failure or str(error)
            self._spool.release()
        if self._sender:
            with self.signals.skippable():
                self.sent = self._sender.finish(0.0 if self.signals.hurried else SEND_AT_MOST_S)

    def write_report(self) -> None:
        """Write the page of the run, if there is a run; raises LabError when the disk is full."""
        if self._runner and not self.signals.hurried:
            from evmperf.app import why  # noqa: PLC0415  # not needed to collect tests

            why.report(self.folder)

    def busy_s(self) -> float:
        """Seconds that the board spent on benchmarks' commands and on booting."""
        tools = sum(result.tool_s for result in self.results if result.driver != "boot")
        return tools + (self._runner.boot_s if self._runner else 0.0)

    def ended(self) -> Ended:
        """How it ended."""
        measured = sum(result.status == "measured" for result in self.results)
        counts = (self.board.name, measured, len(self.planned))
        by = self.signals.by if self.signals.by != "SIGINT" else ""
        for ending, what, why in (
            (Ending.LOST, "The board was lost", self.lost),
            (Ending.LAB, "The lab is broken", self.lab_failure),
            (Ending.LOST, "Gave way", self.gave_way),
            (Ending.WRONG if self.wrong_call else Ending.BOARD, "Nothing was measured", self.not_begun),
        ):
            if why:
                return ended.cut_short(ending, what, why, ended.cases(*counts))
        if self.interrupted:
            what = f"Interrupted{by and f' by {by}'}"
            return ended.cut_short(Ending.CUT, what, "", ended.cases(*counts))
        bad = [r for r in self.results if r.status != "measured"]
        first = f"{bad[0].benchmark} {bad[0].case}: {cause(bad[0])}" if bad else ""
        return ended.of_cases(*counts, first)

    def _start_virtual(self, progress: Callable[[str], None]) -> None:
        from evmperf.virtual import client  # noqa: PLC0415  # not needed to collect tests

        try:
            self._started_bench = client.for_board(self.board, progress)
        except UsageError as error:
            raise LabError(str(error)) from None


def cause(result: Result) -> str:
    """The reason that matters most for a result that is not whole."""
    lasting = [f for f in result.failures if not f.refused] or list(result.failures)
    if not lasting:
        return "some samples are missing"
    return plain(f"{lasting[-1].message} ({lasting[-1].kind})")
