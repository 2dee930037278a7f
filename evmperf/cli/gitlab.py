"""The commands `evmperf nightly` and `evmperf note`."""

import argparse
import os
from pathlib import Path
from typing import Any

from evmperf.boards import yamlfile
from evmperf.cli.arguments import arg, command
from evmperf.gitlab import pipeline
from evmperf.gitlab.note import MergeRequest
from evmperf.model.errors import UsageError
from evmperf.night import plan

_INFLUX = "EVMPERF_INFLUX_URL"
_NIGHTLY = """\
Writes the child pipeline of a night: one job per board, then verdicts, guide and Pages. It measures
the plan of `evmperf night` (docs/lab-at-scale.md), or the boards of the options, which go before the
plan's words. Every option has a variable, so that a pipeline started by hand or by a trigger can set
it; lists are separated by blanks or commas. With EVMPERF_INFLUX_URL set, the night ends with `evmperf push`.
"""


_NOTE = """\
Puts Markdown files into notes of the pipeline's merge request, one note per file; the next
pipeline replaces them. Does nothing outside a merge request.
"""
_OPTIONS = {
    "over": ("labgrid", "labgrid, lava-host or lava-native"),
    "boards": ("", "board files (default: every real board in env/)"),
    "benchmarks": ("", "as pytest's -k (default: all)"),
    "profile": ("", "full or quick (default: the board's)"),
    "release": ("", "SDK release, if the images do not name it"),
    "images": ("", "over labgrid [BOARD=]IMAGE to put on the boards; over lava-native [ROLE=]URL to boot"),
    "repeat": ("", "as pytest's --repeat: 5 or until:2%% (over labgrid)"),
    "against": ("", "baseline of the verdict, as for `evmperf check` (default: last:30)"),
    "confirm": ("", "time for measuring worse figures again (30m; default: none)"),
    "runner-tag": ("evmperf", "tag of the GitLab runners in the lab"),
}
"""Options of a night: default and help."""


def _variable(name: str) -> str:
    return f"EVMPERF_{name.replace('-', '_').upper()}"


@command(
    "nightly",
    _NIGHTLY,
    arg("plan?", "default: the boards of the options", type=Path, metavar="PLAN.yaml"),
    *(arg(f"--{name}", f"{text} [{_variable(name)}]", default=None) for name, (_, text) in _OPTIONS.items()),
    arg("-o --output", "default: standard output", type=Path),
)
def _run_nightly(options: argparse.Namespace) -> None:
    for name, (default, _) in _OPTIONS.items():
        word = name.replace("-", "_")
        if getattr(options, word) is None:
            setattr(options, word, os.environ.get(_variable(name)) or default)
    try:
        over = pipeline.Over(options.over)
    except ValueError:
        raise UsageError(f"--over {options.over}: must be one of {', '.join(pipeline.Over)}") from None
    text = pipeline.render(_plan(options, over), over, options.runner_tag)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


def _plan(options: argparse.Namespace, over: pipeline.Over) -> plan.NightPlan:
    data: dict[str, Any] = {}
    where, stem = "evmperf nightly", "nightly"
    if options.plan:
        where, stem = str(options.plan), options.plan.stem
        data = yamlfile.read(options.plan)
        plan.checked(data, where, stem, parts=over is pipeline.Over.LAVA_NATIVE)
    names = _words(options.boards) or ([] if options.plan else pipeline.real_boards())
    whole = {name: getattr(options, name) for name in ("release", "repeat", "against", "confirm")}
    whole["images"] = _words(options.images)
    whole["boards"] = [{"board": name} for name in names]
    data |= {name: value for name, value in whole.items() if value}
    if os.environ.get(_INFLUX):
        data["push"] = True
    own = {name: value for name in ("benchmarks", "profile") if (value := getattr(options, name))}
    data["boards"] = [entry | own for entry in data["boards"]]
    return plan.checked(data, where, stem, parts=over is pipeline.Over.LAVA_NATIVE)


@command("note", _NOTE, arg("files+=FILE", type=Path))
def _run_note(options: argparse.Namespace) -> None:
    request = MergeRequest.of_pipeline()
    if request is None:
        print("no merge request: no note")
        return
    for file in options.files:
        word = "written" if request.write(file.stem, file.read_text(encoding="utf-8")) else "replaced"
        print(f"note of {file.stem} {word}")


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()
