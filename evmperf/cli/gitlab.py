"""The commands `evmperf nightly` and `evmperf note`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from evmperf.gitlab import pipeline
from evmperf.gitlab.note import MergeRequest
from evmperf.model.errors import UsageError

_INFLUX = "EVMPERF_INFLUX_URL"
_NIGHTLY = """\
Writes the child pipeline of a night: a job a board, then verdicts, guide and Pages. Every option
has a variable, so that a pipeline started by hand or by a trigger can set it; lists are separated
by blanks or commas. With EVMPERF_INFLUX_URL set, the night ends with `evmperf push`.
"""


def add_parsers(subparsers: Any) -> None:
    """Add both commands; each sets `func`, a callable (args) -> exit status."""
    raw = argparse.RawDescriptionHelpFormatter
    nightly = subparsers.add_parser("nightly", description=_NIGHTLY, formatter_class=raw)
    _add(nightly, "over", "labgrid", "labgrid, lava-host or lava-native")
    _add(nightly, "boards", "", "board files (default: every real board in env/)")
    _add(nightly, "benchmarks", "", "as pytest's -k (default: all)")
    _add(nightly, "profile", "", "full or quick (default: the board's)")
    _add(nightly, "release", "", "SDK release, where the images do not tell")
    _add(
        nightly,
        "images",
        "",
        "over labgrid [BOARD=]IMAGE to put on the boards (a file, a URL or a release of the lab's "
        "list); over lava-native [ROLE=]URL to boot",
    )
    _add(nightly, "repeat", "", "as pytest's --repeat: 5 or until:2%% (over labgrid)")
    _add(nightly, "against", "last:30", "what the verdict compares with, as for `evmperf check`")
    _add(nightly, "confirm", "", "time for checking what is worse again (30m; default: not)")
    _add(nightly, "runner-tag", "evmperf", "tag of the GitLab runners in the lab")
    nightly.add_argument("-o", "--output", type=Path, help="default: standard output")
    nightly.set_defaults(func=_run_nightly)

    note = subparsers.add_parser(
        "note",
        description="Puts Markdown files into notes of the pipeline's merge request, one note a "
        "file, which the next pipeline replaces. Does nothing outside a merge request.",
    )
    note.add_argument("files", nargs="+", type=Path, metavar="FILE")
    note.set_defaults(func=_run_note)


def _add(parser: argparse.ArgumentParser, name: str, default: str, text: str) -> None:
    variable = f"EVMPERF_{name.replace('-', '_').upper()}"
    parser.add_argument(f"--{name}", default=os.environ.get(variable) or default, help=f"{text} [{variable}]")


def _run_nightly(options: argparse.Namespace) -> int:
    try:
        over = pipeline.Over(options.over)
    except ValueError:
        raise UsageError(f"--over {options.over}: it is one of {', '.join(pipeline.Over)}") from None
    if options.profile not in ("", "full", "quick"):
        raise UsageError(f"--profile {options.profile}: it is full or quick")
    text = pipeline.render(
        pipeline.PipelinePlan(
            pipeline.chosen(_words(options.boards)),
            over,
            options.benchmarks,
            options.profile,
            options.release,
            tuple(_words(options.images)),
            options.against,
            options.confirm,
            options.runner_tag,
            push=bool(os.environ.get(_INFLUX)),
            repeat=options.repeat,
        )
    )
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


def _run_note(options: argparse.Namespace) -> int:
    request = MergeRequest.of_pipeline()
    if request is None:
        print("no merge request: no note")
        return 0
    for file in options.files:
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
        word = "written" if request.write(file.stem, text) else "replaced"
        print(f"note of {file.stem} {word}")
    return 0


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()
