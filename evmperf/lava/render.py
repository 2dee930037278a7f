"""Complete LAVA jobs from the catalogue, a board file and the templates in `lava-jobs/`."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

import jinja2
import requests
import yaml

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.boards import prompts
from evmperf.boards.board import Board
from evmperf.boards.images import PARTS, WHOLE, role
from evmperf.lava import marked, script
from evmperf.lava.paths import TEMPLATES
from evmperf.lava.selection import SUITE, JobKind, Selection
from evmperf.measure import provenance
from evmperf.model.errors import UsageError
from evmperf.model.results import Case

HEADER_SCHEMA = "1"
METADATA = "evmperf"
"""The key of a job's metadata that says what it measures."""

_ANSWER_S = 20.0
_BOOT_S = 300
_FLASHING_S = 3600
"""For fetching an image and putting it on the board's medium."""
_SPARE_S = 600
"""For what surrounds the measuring: queueing in the job, deploying, transferring the overlay."""


@dataclass(frozen=True)
class JobConsole:
    """A board's console by the drivers of its file: prompts (regular expressions), login, and U-Boot's
    words; defaults are the strategy's.
    """

    login_prompt: str
    prompt: str
    init_shell_prompt: str
    username: str
    password: str
    boot_command: str
    arguments_variable: str
    medium_commands: tuple[str, ...]
    host_prompt: str = r"[\$#] $"

    @classmethod
    def of(cls, board: Board) -> Self:
        """The console of a board."""
        shell = board.drivers.get("EvmShellDriver") or {}
        strategy = board.strategy
        medium = strategy.get("medium") or board.options.boot.medium
        return cls(
            login_prompt=strategy.get("login_prompt", prompts.LOGIN_PROMPT),
            prompt=shell.get("prompt", prompts.SHELL_PROMPT),
            init_shell_prompt=strategy.get("init_shell_prompt", prompts.INIT_SHELL_PROMPT),
            username=shell.get("username", prompts.USERNAME),
            password=shell.get("password") or "",
            boot_command=strategy.get("boot_command", prompts.BOOT_COMMAND),
            arguments_variable=strategy.get("kernel_arguments_variable", prompts.KERNEL_ARGUMENTS_VARIABLE),
            medium_commands=tuple(strategy["media"].get(medium, ())),
        )

    def boot_commands(self, kernel_arguments: str) -> list[str]:
        """What U-Boot is told to boot what is installed."""
        words = f"setenv {self.arguments_variable} {kernel_arguments}".strip()
        return [*self.medium_commands, words, self.boot_command]

    def prompt_after(self, kernel_arguments: str) -> str:
        """What ends a boot with these kernel arguments."""
        return self.init_shell_prompt if "init=" in kernel_arguments else self.login_prompt


@dataclass(frozen=True)
class JobRequest:
    """A job beyond board and benchmarks: `images` by role (see `resources`; none: boot the installed system),
    `keyword` as pytest's -k.
    """

    kind: JobKind
    keyword: str = ""
    release: str = ""
    images: Mapping[str, str] = field(default_factory=dict)
    says: Mapping[str, str] = field(default_factory=dict)
    """What a whole image says of itself: name, sha256, uboot, kernel, version, release, machine."""
    device_type: str = ""
    tags: tuple[str, ...] = ()
    priority: str = "medium"


def render(board: Board, selection: Selection, request: JobRequest) -> str:
    """The job as YAML; raises UsageError for what cannot be put into one."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # values go in as JSON
    )
    environment.filters["yaml"] = lambda value: json.dumps(value, ensure_ascii=False)
    environment.filters["seconds"] = lambda value: {"seconds": int(value)}
    header = job_header(board, selection, request)
    measuring_s = measuring_time_s(board, selection)
    template = environment.get_template(f"{request.kind}.yaml.jinja2")
    what = request.keyword or f"{len(selection.benchmarks)} benchmarks"
    return template.render(
        metadata={METADATA: marked.encode_header(header)},
        name=f"evmperf {board.name} {request.kind}: {what}"[:200],
        device_type=request.device_type or default_device_type(board, request.kind),
        tags=[*request.tags, *([board.file.stem] if request.kind is JobKind.HOST else [])],
        priority=request.priority,
        suite=SUITE,
        no_overlay=script.NO_OVERLAY,
        console=JobConsole.of(board),
        images={name: image(url) for name, url in request.images.items() if name != WHOLE},
        whole=_whole(request),
        flashing_s=_FLASHING_S,
        nfs="nfsrootfs" in request.images,
        cycles=cycles(selection),
        steps=_steps(board, selection, request, header),
        boot_s=_BOOT_S,
        measuring_s=measuring_s,
        job_s=measuring_s
        + _SPARE_S
        + _BOOT_S * (len(cycles(selection)) + 1)
        + (_FLASHING_S if WHOLE in request.images else 0),
    )


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


def _whole(request: JobRequest) -> dict[str, str]:
    """The deploy resource of a whole image, with its checksum where that is known."""
    if WHOLE not in request.images:
        return {}
    known = {"sha256sum": request.says["sha256"]} if "sha256" in request.says else {}
    return image(request.images[WHOLE]) | known


def _steps(board: Board, selection: Selection, request: JobRequest, header: dict[str, str]) -> list[str]:
    if request.kind is JobKind.HOST:
        return script.host_steps(
            board, selection, header, whole=not request.keyword, image=request.images.get(WHOLE, "")
        )
    if request.kind is JobKind.NATIVE:
        return script.native_steps(board, selection, header)
    return [script.prologue(header), script.facts(selection.tools)]


def definition_header(definition: str) -> dict[str, str] | None:
    """What a job's definition says about itself; None for a job that is not of evmperf."""
    try:
        return marked.decode_header(yaml.safe_load(definition)["metadata"][METADATA])
    except (yaml.YAMLError, KeyError, TypeError, ValueError):
        return None


def resources(given: Iterable[str], kind: JobKind) -> dict[str, str]:
    """Images by role, WHOLE alone or parts of a network boot; raises UsageError for unfit ones."""
    words = list(given)
    if not words:
        return {}
    if kind is JobKind.BOOT:
        raise UsageError(f"--image is for native and host jobs: a {kind} job boots the installed system")
    if kind is JobKind.HOST:
        if len(words) > 1 or role(words[0])[0] in PARTS:
            raise UsageError("--image: a host job takes exactly one image, and it must be a whole one")
        return {WHOLE: words[0]}
    found: dict[str, str] = {}
    for word in words:
        part, url = role(word)
        if not part:
            raise UsageError(
                f"--image {url}: its name does not tell its role: write ROLE={url}, with ROLE one "
                f"of {', '.join([WHOLE, *PARTS])}"
            )
        if part in found:
            raise UsageError(f"--image: two images are the {part}: {found[part]} and {url}")
        _check_url(url)
        found[part] = url
    if WHOLE in found:
        if len(found) > 1:
            raise UsageError("--image: a whole image has its own kernel: remove the other --image options")
    elif "kernel" not in found or not {"ramdisk", "nfsrootfs"} & set(found):
        raise UsageError("--image: a boot over the network needs a kernel, and ramdisk or nfsrootfs")
    return found


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return  # on the worker's disk, which this machine cannot see
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"--image {url}: LAVA fetches http://, https:// and file:// only")
    try:
        answer = requests.head(url, timeout=_ANSWER_S, allow_redirects=True)
    except requests.RequestException as error:
        raise UsageError(f"--image {url}: does not answer ({type(error).__name__})") from None
    if not answer.ok:
        raise UsageError(f"--image {url}: answers {answer.status_code} {answer.reason}")
