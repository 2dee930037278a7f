"""What a job measures: benchmarks of the catalogue that a board has and a kind of job can run."""

import enum
import re
from dataclasses import dataclass, replace

import jinja2

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import OWN_TOOL, Benchmark, Place
from evmperf.benchmarks.step import CleanUp, Measure, Prepare, SearchStep, Where
from evmperf.boards.board import Board
from evmperf.measure.state import look
from evmperf.model.errors import UsageError
from evmperf.model.results import Case


class JobKind(enum.StrEnum):
    """The kinds of LAVA jobs."""

    HOST = "host"
    """The device is the lab's Labgrid host; its shell runs pytest."""
    NATIVE = "native"
    """LAVA boots the board; its shell runs the benchmarks' steps."""
    BOOT = "boot"
    """LAVA power-cycles the board; the marks are in the log's time stamps."""


NativeStep = Prepare | Measure | CleanUp
"""What a native job's test shell can carry out."""


@dataclass(frozen=True)
class Selection:
    """A job's benchmarks in their order, and a line for each refused one."""

    board: Board
    profile: str
    benchmarks: tuple[Benchmark, ...]
    refused: tuple[str, ...]

    @property
    def cases(self) -> list[tuple[Benchmark, Case]]:
        """Every case that the board has, in its order."""
        return [(b, case) for b in self.benchmarks for case in _rows(b, self.board, self.profile)]

    @property
    def tools(self) -> list[str]:
        """Programs that the board needs, sorted."""
        return sorted({tool for b in self.benchmarks for tool in b.tools_on(self.board)})


def select(board: Board, kind: JobKind, profile: str, keyword: str = "") -> Selection:
    """The benchmarks that `keyword` (pytest's -k) selects and the job can run; raises UsageError for none."""
    asked = [
        benchmark
        for benchmark in (b.by(board.options.board.tool or OWN_TOOL) for b in catalogue.benchmarks().values())
        if matches(keyword, f"test_{benchmark.driver}.py {benchmark.name}")
    ]
    if not asked:
        raise UsageError(f"no benchmark matches {keyword!r}; `evmperf benchmark list` names them")
    chosen, refused = [], []
    for benchmark in asked:
        if reason := benchmark.unsupported(board) or _unfit(benchmark, board, kind, profile):
            refused.append(f"{benchmark.name}: {reason}")
        else:
            chosen.append(benchmark)
    if not chosen:
        raise UsageError(
            f"nothing of {keyword or 'the catalogue'} can be in a {kind} job on "
            f"{board.file_name}: {'; '.join(refused)}"
        )
    return Selection(board, profile, tuple(chosen), tuple(refused))


def _rows(benchmark: Benchmark, board: Board, profile: str) -> list[Case]:
    return [case for case in benchmark.cases(profile) if not benchmark.unsupported(board, case)]


def steps_of(benchmark: Benchmark, board: Board, case: Case, profile: str) -> list[NativeStep]:
    """The steps of a case that a native job can run; a benchmark with others is not in it."""
    return [
        # The look after the case says how its file system was mounted.
        replace(step, command=f"{look.MOUNTED}{step.command}") if isinstance(step, CleanUp) else step
        for step in benchmark.declared_steps(board, case, profile)
        if not isinstance(step, SearchStep) and step.where is Where.BOARD
    ]


def _unfit(benchmark: Benchmark, board: Board, kind: JobKind, profile: str) -> str:
    """Why this kind of job cannot run a benchmark that the board has, "" if it can."""
    cases = _rows(benchmark, board, profile)
    if not cases:
        lacking = [benchmark.unsupported(board, case) for case in benchmark.cases(profile)]
        return lacking[0] if lacking else f"it has no profile {profile}"
    if kind is JobKind.HOST:
        return ""
    fitting = {Place.BOOT: JobKind.BOOT, Place.SHELL: JobKind.NATIVE}.get(benchmark.place, JobKind.HOST)
    if fitting is not kind:
        return f"it runs in {benchmark.place}: use --kind {fitting}"
    for step in benchmark.declared_steps(board, cases[0], profile):
        if isinstance(step, SearchStep):
            return "it is a search and its steps depend on results: use --kind host"
        if step.where is Where.TESTER:
            return "it needs the tester beside the board: use --kind host"
    return ""


def matches(keyword: str, text: str) -> bool:
    """Whether pytest's -k expression (whose evaluation is private) selects a text; raises UsageError."""
    if not keyword.strip():
        return True
    words = re.sub(
        r"[^\s()]+",
        lambda m: m[0] if m[0] in ("and", "or", "not") else str(m[0].lower() in text.lower()),
        keyword,
    )
    try:
        selected = jinja2.Environment(autoescape=True).compile_expression(words)()
    except (jinja2.TemplateSyntaxError, TypeError, RecursionError):
        selected = None
    if not isinstance(selected, bool):
        raise UsageError(f"-k {keyword!r} is not an expression of words, and, or, not and parentheses")
    return selected


def case_name(benchmark: Benchmark, case: Case) -> str:
    """The LAVA test case that says whether a case was measured."""
    return f"{benchmark.name}.{lava_word(case.label)}"


def lava_word(text: str) -> str:
    """A text as a name in LAVA, which holds letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)
