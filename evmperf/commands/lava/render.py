"""Complete LAVA jobs: from the catalogue, a board file, and the templates in `lava-jobs/templates/`."""

import functools
import json
import re
import shlex
from collections.abc import Mapping

import jinja2
import msgspec

from evmperf.benchmarks import control
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.step import CleanUp, Prepare
from evmperf.benchmarks.tools import control as loop
from evmperf.boards import prompts
from evmperf.boards.board import Board
from evmperf.commands.lava import joblog
from evmperf.commands.lava.selection import JobKind, NativeStep, Selection, case_name, steps_of
from evmperf.measure import provenance, shellstep
from evmperf.measure.around import STATE
from evmperf.measure.state import look
from evmperf.model import places
from evmperf.model.errors import UsageError
from evmperf.model.results import Case

JOBS = places.project("lava-jobs")

HEADER_SCHEMA = "1"
METADATA = "evmperf"
"""The key of a job's metadata that says what it measures."""

_BOOT_S = 300
_FLASHING_S = 3600
"""For fetching an image and putting it on the board's medium."""
_SPARE_S = 600
"""For what surrounds the measuring: queueing in the job, deploying, transferring the overlay."""

_FACTS_S = 60.0
_CONTROL_S = 120.0
_MACHINE = "aarch64"
"""Of a board whose file names none: all K3."""
_WAIT = "30m"
"""How long a job on the lab's Labgrid host waits for a board that somebody else holds."""
_END = "EVMPERF_END"


class JobConsole:
    """A board's console by the drivers of its file: prompts (regular expressions), login, and U-Boot's
    words; defaults are the strategy's.
    """

    def __init__(self, board: Board) -> None:
        shell, strategy = board.drivers.get("EvmShellDriver") or {}, board.strategy
        self.login_prompt: str = strategy.get("login_prompt", prompts.LOGIN_PROMPT)
        self.init_shell_prompt: str = strategy.get("init_shell_prompt", prompts.INIT_SHELL_PROMPT)
        self.prompt = shell.get("prompt", prompts.SHELL_PROMPT)
        self.username = shell.get("username", prompts.USERNAME)
        self.password = shell.get("password") or ""
        self._boot_command = strategy.get("boot_command", prompts.BOOT_COMMAND)
        self._variable = strategy.get("kernel_arguments_variable", prompts.KERNEL_ARGUMENTS_VARIABLE)
        medium = strategy.get("medium") or board.options.boot.medium
        self._medium_commands = strategy["media"].get(medium, ())

    def boot_commands(self, kernel_arguments: str) -> list[str]:
        """What U-Boot is told to boot what is installed."""
        words = f"setenv {self._variable} {kernel_arguments}".strip()
        return [*self._medium_commands, words, self._boot_command]

    def prompt_after(self, kernel_arguments: str) -> str:
        """What ends a boot with these kernel arguments."""
        return self.init_shell_prompt if "init=" in kernel_arguments else self.login_prompt


class JobRequest(msgspec.Struct, frozen=True):
    """A job beyond board and benchmarks: `image` to install ("": boot the installed system), `keyword` as
    pytest's -k.
    """

    kind: JobKind
    keyword: str = ""
    release: str = ""
    image: str = ""
    says: Mapping[str, str] = {}
    """What the image says of itself: name, sha256, uboot, kernel, version, release, machine."""
    device_type: str = ""
    tags: tuple[str, ...] = ()
    priority: str = "medium"


def render(board: Board, selection: Selection, request: JobRequest) -> str:
    """The job as YAML; raises UsageError for what cannot be put into one."""
    header = job_header(board, selection, request)
    whole, says = request.image, request.says
    measuring_s = measuring_time_s(board, selection)
    what = request.keyword or f"{len(selection.benchmarks)} benchmarks"
    return _fill(
        f"{request.kind}.yaml.jinja2",
        metadata={METADATA: joblog.encode_header(header)},
        name=f"evmperf {board.name} {request.kind}: {what}"[:200],
        device_type=request.device_type or default_device_type(board, request.kind),
        tags=[*request.tags, *([board.file.stem] if request.kind is JobKind.HOST else [])],
        priority=request.priority,
        suite=joblog.SUITE,
        no_overlay=joblog.RAISED["no_overlay"],
        console=JobConsole(board),
        # With its checksum, where that is known.
        whole=image(whole) | ({"sha256sum": says["sha256"]} if "sha256" in says else {}) if whole else {},
        flashing_s=_FLASHING_S,
        cycles=cycles(selection),
        steps=_steps(board, selection, request, header),
        boot_s=_BOOT_S,
        measuring_s=measuring_s,
        job_s=measuring_s + _SPARE_S + _BOOT_S * (len(cycles(selection)) + 1) + (_FLASHING_S if whole else 0),
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(JOBS / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # values go in as JSON, or quoted for the shell
    )
    environment.filters["yaml"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment


def _fill(template: str, **values: object) -> str:
    return _environment().get_template(template).render(values)


def job_header(board: Board, selection: Selection, request: JobRequest) -> dict[str, str]:
    """What a job says about itself, in its metadata and in its log."""
    return {
        "schema": HEADER_SCHEMA,
        "kind": str(request.kind),
        "board": board.name,
        "board_file": board.file_name,
        "profile": selection.profile,
        "release": request.release or request.says.get("release", ""),
        "benchmarks": ",".join(benchmark.name for benchmark in selection.benchmarks),
        **provenance.project().to_dict(),
        **{f"image_{key}": value for key, value in request.says.items()},
    }


def default_device_type(board: Board, kind: JobKind) -> str:
    """The device type that fits a board (see `devices`)."""
    if kind is JobKind.HOST:
        return "evm-lab-host"
    return f"evm-{board.options.board.virtual or board.file.stem}"


def cycles(selection: Selection) -> list[tuple[Benchmark, Case, str]]:
    """Every cold boot of a boot-time job in its order, with the kernel's arguments."""
    return [
        (benchmark, case, str(case.params.get("kernel_arguments", "")))
        for benchmark, case in selection.cases
        for _ in range(benchmark.profiles[selection.profile].repeats)
        if benchmark.place == "boot"
    ]


def measuring_time_s(board: Board, selection: Selection) -> int:
    """Seconds after which measuring counts as hung: the sum of the steps' timeouts, at most a day."""
    total: float = _SPARE_S
    for benchmark, case in selection.cases:
        if benchmark.place == "boot":
            total += _BOOT_S * benchmark.profiles[selection.profile].repeats
        elif benchmark.place == "shell":
            steps = benchmark.declared_steps(board, case, selection.profile)
            total += sum(step.timeout_s for step in steps)
        else:
            total += _BOOT_S
    return min(int(total), 24 * 3600)


def image(url: str) -> dict[str, str]:
    """A deploy resource: the URL and, from its name, its compression."""
    suffixes = {"gz": "gz", "xz": "xz", "bz2": "bz2", "zst": "zstd", "zip": "zip"}
    compression = suffixes.get(url.rpartition(".")[2].lower())
    return {"url": url} | ({"compression": compression} if compression else {})


def _steps(board: Board, selection: Selection, request: JobRequest, header: dict[str, str]) -> list[str]:
    """The steps of the test definition, on a board one a case; raises UsageError."""
    if request.kind is JobKind.HOST:
        return [_pytest(board, selection, request, header)]
    steps = [
        prologue(header),
        _heredoc(f"evm_step {provenance.LABEL}", provenance.script(selection.tools), _FACTS_S),
    ]
    if text := loop.script(board.options.desk.machine or _MACHINE):
        steps.append(_heredoc(f"evm_step {control.NAME}", text, _CONTROL_S))
    if request.kind is JobKind.BOOT:
        return steps
    looked_at: list[str] = []
    for benchmark, case in selection.cases:
        driver = benchmark.driver
        seen = f"evm_look {driver} {joblog.checksum(driver)} {look.SECONDS:.0f}"
        file = f"look_{driver}"
        written = f"cat >$F/{file} {_here(file, look.script(board, driver))}"
        before = [] if driver in looked_at else [written]
        # The look after a case is the one before the next, as at a desk.
        before += [] if looked_at[-1:] == [driver] else [seen]
        looked_at.append(driver)
        calls = steps_of(benchmark, board, case, selection.profile)
        lines = (_call(step, benchmark.label(case, step)) for step in calls)
        end = f"evm_end {shlex.quote(case_name(benchmark, case))}"
        steps.append("\n".join([*before, "evm_begin", *lines, end, seen]))
    return steps


def _pytest(board: Board, selection: Selection, request: JobRequest, header: Mapping[str, str]) -> str:
    """One call of pytest on the lab's Labgrid host, which first puts the image, if any, on the board."""
    words = [f"--profile={selection.profile}", "--run-kind=lava", f"--wait={_WAIT}"]
    if request.keyword:
        # As the ids of the tests begin, so that no name is taken for part of another.
        chosen = " or ".join(f"[{benchmark.name}-" for benchmark in selection.benchmarks)
        words += [f"-k {shlex.quote(chosen)}"]
    words += [f"--release={shlex.quote(header['release'])}"] if header["release"] else []
    words += [f"--image={shlex.quote(request.image)}"] if request.image else []
    return _fill(
        "host.sh.jinja2",
        header=shlex.quote(joblog.header_line(header)),
        file=shlex.quote(board.file_name),
        place=shlex.quote(board.file.stem),
        words=" ".join(words),
        **joblog.RAISED,
    ).rstrip()


def prologue(header: Mapping[str, str]) -> str:
    """What makes the test shell ready, and says in the log what job this is."""
    return _fill(
        "prologue.sh.jinja2",
        folder=places.STEP_FOLDER,
        wrapper=shellstep.wrapper().rstrip("\n"),
        state=STATE,
        copies=" ".join(str(n + 1) for n in range(joblog.COPIES)),
        hung=joblog.HUNG,
        **joblog.RAISED,
        header=shlex.quote(joblog.header_line(header)),
        end=_END,
    ).rstrip()


def _call(step: NativeStep, label: str) -> str:
    match step:
        case Prepare():
            word = "evm_prepare"
        case CleanUp():
            word = "evm_always"
        case _:
            word = "evm_shared" if step.shared else "evm_measure"
    return _heredoc(f"{word} {shlex.quote(label)}", step.command, step.timeout_s)


def _heredoc(call: str, command: str, timeout_s: float) -> str:
    return f"{call} {joblog.checksum(command)} {timeout_s:.0f} {_here(call, command)}"


def _here(call: str, command: str) -> str:
    if re.search(rf"^{_END}$", command, re.MULTILINE):
        raise UsageError(f"the step {call} has a line {_END}, which would end it in a LAVA job")
    if re.search(r"--cmd|--shell", command) and re.search(r"\$\d", command):
        # LAVA 2023.01 puts a backslash before the arguments of such a text (TestRunnerAction).
        raise UsageError(f"the step {call} has --cmd or --shell beside $1, which LAVA changes")
    return f"<<'{_END}'\n{command}\n{_END}"
