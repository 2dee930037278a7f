"""glmark2: command line and parser of its score."""

from __future__ import annotations

import re

from evmperf.model.errors import RefusedOutput

TEXT_FILE = "glmark2.txt"

_SCORE = re.compile(r" +glmark2 Score: (\d+) *")
_RENDERER = re.compile(r" +GL_RENDERER: +(\S.*?) *")
_SCENE = re.compile(r"\[[a-z0-9-]+\] .*: FPS: (\d+) FrameTime: \d+\.\d+ ms")
_OTHER = re.compile(
    r"=+| +glmark2 \d{4}\.\d\d.*| +OpenGL Information| +(?:GL_VENDOR|GL_VERSION): .*"
    r"| +Surface (?:Config|Size): .*"
    # Then no frame comes faster than the display shows it, as in the guides' DRM scores.
    r"|\*\* Failed to set swap interval\. Results may be bounded above by refresh rate\."
)
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "SwiftShader")


def command(backend: str, scenes: str) -> str:
    """Shell text that runs glmark2 on a backend (`drm` or `wayland`), over all scenes or `scenes`,
    which are its own `-b` options.
    """
    words = " ".join([f"glmark2-es2-{backend}", *scenes.split()])
    return f'{words} >"$OUT/{TEXT_FILE}"'


def score(text: str) -> float:
    """The score, which is the mean of the scenes' frames per second.

    Raises RefusedOutput for a renderer that draws on the CPU, when glmark2 did not come to its
    end, for a score that is not that of the scenes, or for a line that glmark2 does not print for
    a scene that ran.
    """
    lines = text.splitlines()
    for line in lines:
        if not any(known.fullmatch(line) for known in (_SCORE, _RENDERER, _SCENE, _OTHER)):
            raise RefusedOutput(f"glmark2 printed something unexpected: {line[:120]!r}", text)
    _check_gpu(_matches(_RENDERER, lines), text)
    # A rule opens and closes the whole.
    if lines[-1] != lines[0] or text[-1] != "\n":
        raise RefusedOutput("glmark2's output is not whole", text)
    scores = _matches(_SCORE, lines)
    if len(scores) != 1:
        raise RefusedOutput(f"glmark2 printed {len(scores)} scores instead of one", text)
    frames = [int(fps) for fps in _matches(_SCENE, lines)]
    value = int(scores[0])
    if not frames or value <= 0:
        raise RefusedOutput(f"{len(frames)} scenes scored {value}", text)
    # Frames per second are rounded for print, the score is their mean before that.
    mean = sum(frames) / len(frames)
    if abs(value - mean) > 2:
        raise RefusedOutput(f"a score of {value} is not the mean of the scenes, {mean:.1f}", text)
    return float(value)


def _matches(pattern: re.Pattern[str], lines: list[str]) -> list[str]:
    return [match.group(1) for line in lines if (match := pattern.fullmatch(line))]


def _check_gpu(names: list[str], text: str) -> None:
    if len(names) != 1:
        raise RefusedOutput("glmark2 does not say what draws", text)
    if names[0].startswith(_SOFTWARE):
        raise RefusedOutput(
            f"{names[0]} draws on the CPU: see that the GPU's driver is loaded", text
        )
