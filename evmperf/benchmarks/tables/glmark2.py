"""glmark2 on the bare display, for which the compositor is stopped, and under the compositor."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.step import CleanUp, Measure, Outputs, Plan, Prepare, Step, output
from evmperf.benchmarks.tools._checks import agree, over, refuse, span
from evmperf.boards.board import Board
from evmperf.model.places import STEP_FOLDER
from evmperf.model.results import Case, Reading
from evmperf.model.shelltext import ShellTexts

_SHELL = ShellTexts(__file__)
_TEXT_FILE = "glmark2.txt"
_NO_COMPOSITOR = "none"
"""The board file's word for a board without a compositor."""
_STOPPED = f"{STEP_FOLDER}/compositor-stopped"

_SCORE = re.compile(r" +glmark2 Score: (\d+) *")
_RENDERER = re.compile(r" +GL_RENDERER: +(\S.*?) *")
_SCENE = re.compile(r"\[([a-z0-9-]+)\] (.*): (?:FPS: (\d+) FrameTime: (\d+\.\d{3}) ms|(Unsupported))")
_RULE = re.compile(r"=+")
_OTHER = re.compile(
    r"=+| +glmark2 \d{4}\.\d\d.*| +OpenGL Information| +(?:GL_VENDOR|GL_VERSION): .*"
    # Why a scene is unsupported.
    r"|Error: Scene\w+ requires .*"
)
_SIZE = re.compile(r" +Surface Size: +(\d+x\d+ (?:windowed|fullscreen)) *")
_CONFIG = re.compile(r" +Surface Config: +(\S.*)")
_BOUND = re.compile(r"(\*\* Failed to set swap interval\. Results may be bounded above by refresh rate\.)")
"""Then no frame comes faster than the display shows it, as in the guides' DRM scores. It stands
where the canvas was made: before everything, or before the scenes.
"""
_NOISE = re.compile(
    r"(?:MESA(?:-LOADER)?|libEGL|libGL): (?:info|debug)\b.*\n|PVR:\(\w+\): .*\n"
    # A display that cannot show half of a new frame; the rate is not bounded by this.
    r"|Warning: DRM_CAP_ASYNC_PAGE_FLIP not supported, falling back to 'mailbox' mode .*\n"
)
"""What drivers print on standard error, also in mid-line, and glmark2 before its output."""
_SOFTWARE = ("llvmpipe", "pipe (llvm", "softpipe", "swrast", "swiftshader", "lavapipe", "software rasterizer")
_DRAWN = """
    build build texture texture texture shading shading shading shading bump bump bump effect2d effect2d
    pulsar desktop desktop buffer buffer buffer ideas jellyfish terrain shadow refract conditionals
    conditionals conditionals function function loop loop loop
"""
_SCENES = _DRAWN.split()
"""The default scenes of glmark2 (since 2014.03)."""


@dataclass(frozen=True)
class Drawing:
    """The mean frames per second of the supported scenes; `unsupported` ones make it another quantity."""

    score: float
    renderer: str
    unsupported: list[str]
    size: str
    """Of the surface, as `1920x1080 fullscreen`; "" where glmark2 does not say it."""
    bounded: bool
    """Whether the display's refresh bounds the frames."""

    @property
    def software(self) -> bool:
        """Whether the renderer draws on the CPU."""
        return any(word in self.renderer.lower() for word in _SOFTWARE)

    @property
    def variant(self) -> str:
        """The conditions of a comparison with other drawings, in words."""
        words = [f"without {scene}" for scene in self.unsupported]
        words += ["drawn by the CPU"] if self.software else []
        words += [f"surface {self.size}"] if self.size else []
        words += ["bounded by the display's refresh"] if self.bounded else []
        return "; ".join(words)


def _has_none(board: Board) -> bool:
    return board.options.graphics.compositor == _NO_COMPOSITOR


def _no_compositor(board: Board, case: Case) -> str:
    lost = _has_none(board) and case.label == "Glmark2-Wayland"
    return f"{board.file_name} says that the board has no compositor" if lost else ""


def _steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    scenes, expect_s = str(case.params["scenes"]), float(case.params["expect_s"])
    backend = case.label.removeprefix("Glmark2-").lower()
    words, service = [f"glmark2-es2-{backend}", *scenes.split()], board.options.graphics.compositor
    find = f"{_SHELL('find')}; " if backend == "wayland" else ""
    command = f'{find}{" ".join(words)} >"$OUT/{_TEXT_FILE}"'

    def parse(outputs: Outputs) -> list[Reading]:
        on_cpu = board.options.graphics.renderer == "software"
        drawn = drawing(output(outputs, _TEXT_FILE), scenes, on_cpu)
        return [Reading("score", drawn.score, variant=drawn.variant)]

    measure = Measure("measure", command, 1800, expect_s, parse=parse)
    if backend == "wayland" or _has_none(board):
        return [measure]
    stop, start = (_SHELL(name, service=service, stopped=_STOPPED) for name in ("stop", "start"))
    return [Prepare("prepare", stop, 60, 2), measure, CleanUp("clean-up", start, 60, 2)]


def drawing(text: str, scenes: str = "", software: bool = False) -> Drawing:
    """What glmark2 prints of `scenes` (its `-b` options; all without); raises RefusedOutput for missing
    scenes, another score than theirs, unknown lines, and a renderer on the CPU unless `software`.
    """
    lines = _NOISE.sub("", text).splitlines()
    for line in lines:
        forms = (_SCORE, _RENDERER, _SCENE, _SIZE, _CONFIG, _BOUND, _OTHER)
        fits = any(pattern.fullmatch(line) for pattern in forms)
        refuse(not fits, f"glmark2 printed something unexpected: {line[:120]!r}", text)
    renderers = _matches(_RENDERER, lines)
    refuse(len(renderers) != 1, "glmark2 does not name the renderer", text)
    sizes, bounds = _matches(_SIZE, lines), _matches(_BOUND, lines)
    once = len(sizes) < 2 and len(sizes) == len(_matches(_CONFIG, lines))
    refuse(not once, "glmark2 does not print its surface and size exactly once", text)
    while lines and _BOUND.fullmatch(lines[0]):
        lines = lines[1:]
    # A rule opens and closes the output.
    whole = len(lines) > 1 and lines[-1] == lines[0] and _RULE.fullmatch(lines[0]) and text[-1] == "\n"
    refuse(not whole, "glmark2's output is not whole", text)
    scores = _matches(_SCORE, lines)
    refuse(len(scores) != 1, f"glmark2 printed {len(scores)} scores instead of one", text)
    drawn = _drawn(lines, text)
    names = [word.partition(":")[0] for word in scenes.split() if word != "-b"] or list(_SCENES)
    others = [name for name, _ in drawn] != names
    refuse(others, f"glmark2 drew {len(drawn)} scenes, not the {len(names)} wanted", text)
    frames = [rate for _, rate in drawn if rate is not None]
    value = int(scores[0])
    refuse(not frames or value <= 0, f"{len(frames)} scenes scored {value}", text)
    # Frames per second are rounded for print, the score is their mean before that.
    mean = sum(frames) / len(frames)
    refuse(abs(value - mean) > 2, f"a score of {value} is not the mean of the scenes, {mean:.1f}", text)
    missing = [name for name, rate in drawn if rate is None]
    result = Drawing(float(value), renderers[0], missing, "".join(sizes), bool(bounds))
    on_cpu = f"{result.renderer} draws on the CPU: check that the GPU's driver is loaded"
    refuse(result.software and not software, on_cpu, text)
    return result


def _drawn(lines: list[str], text: str) -> list[tuple[str, int | None]]:
    """The scenes with their frames a second; None for one that the GPU does not support."""
    scenes: list[tuple[str, int | None]] = []
    for match in filter(None, map(_SCENE.fullmatch, lines)):
        name, _, printed, took, missing = match.groups()
        if not missing:
            fps = float(printed)
            # A frame that takes longer than a second counts as one a second.
            near = agree(over(1000.0, span(took)), (fps - 1, max(fps + 1, 1.0)))
            same = near or fps == 1 < float(took) / 1000
            refuse(not same, f"glmark2's {name} of {printed} FPS does not take {took} ms", text)
        scenes.append((name, None if missing else int(printed)))
    return scenes


def _matches(pattern: re.Pattern[str], lines: list[str]) -> list[str]:
    return [match.group(1) for line in lines if (match := pattern.fullmatch(line))]


BENCHMARK = Benchmark(
    **declared(__file__)["glmark2"],
    steps=_steps,
    board_tools=lambda board: () if _has_none(board) else ("glmark2-es2-wayland",),
    lacks=_no_compositor,
)
