"""`evmperf night` and `gitlab`: nights on this host, or in a GitLab pipeline."""

import argparse
import os
import time
from pathlib import Path
from typing import Any

from evmperf.boards import yamlfile
from evmperf.commands.cli.arguments import Added, argument, command, group, show
from evmperf.commands.gitlab import pipeline
from evmperf.commands.gitlab.note import MergeRequest
from evmperf.commands.night import closing, plan
from evmperf.commands.night.conductor import NightConductor
from evmperf.commands.night.folder import open_night
from evmperf.measure.signals import listening
from evmperf.model import inputs, limits
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus

group("gitlab", "GitLab: the pipeline of a night, and notes on merge requests (docs/lava.md).")


@command(
    "night",
    argument("plan", type=Path, metavar="PLAN.yaml"),
    argument("--results", type=Path, help="default: the plan's"),
    argument("--new", action="store_true", help="do not continue an interrupted night"),
    epilog="""Exit status: 0 all measured and nothing worse, 1 something failed, is worse or was not judged,
    2 cut by Ctrl-C, 3 a board was not measured because of the lab, 4 a wrong plan, 6 as of `evmperf check`.
    """,
)
def _night(options: argparse.Namespace) -> int:
    """Measures many boards side by side by a plan (docs/lab-at-scale.md), each in its own session on a
    place that the night holds. Waits for boards in use, tries once more after a lab failure, and ends with
    verdicts, guide and site. The same call resumes a killed night.
    """
    asked = plan.read(options.plan)
    results = Path(options.results or asked.results).absolute()
    folder = open_night(asked, options.plan.read_text(), results, fresh=options.new)
    if folder.resumed:
        show(f"going on with {folder.path.name}, which began at {time.ctime(folder.began)}")
    night = NightConductor(asked, results, folder, lambda line: show(f"{time.strftime('%H:%M:%S')} {line}"))
    cut = []

    def stop(number: int, _: object) -> None:
        cut.append(number)
        night.end()

    with listening(stop):
        night.measure()
    if cut:
        print(f"interrupted: `evmperf night {options.plan}` resumes it")
        return ExitStatus.INTERRUPTED
    ended = closing.close(night)
    for line in (*ended.lines, f"results: {folder.path}"):
        show(line)
    return ended.status


def _of_ci(name: str, about: str, default: str = "") -> Added:
    """An option whose value a variable of the pipeline may give."""
    variable = f"EVMPERF_{name.upper().replace('-', '_')}"

    def add(parser: Any) -> None:
        value = os.environ.get(variable) or default
        parser.add_argument(f"--{name}", default=value, help=f"{about} [{variable}]")

    return add


@command(
    "gitlab pipeline",
    argument("plan", nargs="?", type=Path, metavar="PLAN.yaml", help="default: the boards of the options"),
    _of_ci("over", "labgrid, lava-host or lava-native", "labgrid"),
    _of_ci("boards", "board files (default: every real board in env/)"),
    _of_ci("benchmarks", "as pytest's -k (default: all)"),
    _of_ci("profile", "full or quick (default: the board's)"),
    _of_ci("release", "SDK release, if the images do not name it"),
    _of_ci("images", "[BOARD=]IMAGE to put on the boards first"),
    _of_ci("repeat", "as pytest's --repeat: 5 or until:2%% (over labgrid)"),
    _of_ci("against", f"baseline of the verdict, as for `evmperf check` (default: {plan.AGAINST})"),
    _of_ci("confirm", "time for measuring worse figures again (30m; default: none)"),
    _of_ci("runner-tag", "tag of the GitLab runners in the lab", "evmperf"),
    argument("-o", "--output", type=Path, help="default: standard output"),
)
def _run_nightly(options: argparse.Namespace) -> None:
    """Writes the child pipeline of a night: one job per board, then verdicts, guide and Pages. It measures
    the plan of `evmperf night` (docs/lab-at-scale.md), or the boards of the options, which go before the
    plan's words. Every option has a variable, so that a pipeline started by hand or by a trigger can set
    it; lists are separated by blanks or commas. With EVMPERF_INFLUX_URL set, the night ends with
    `evmperf push`.
    """
    try:
        over = pipeline.Over(options.over)
    except ValueError:
        raise UsageError(f"--over {options.over}: must be one of {', '.join(pipeline.Over)}") from None
    text = pipeline.render(_plan(options), over, options.runner_tag)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


def _plan(options: argparse.Namespace) -> plan.NightPlan:
    data: dict[str, Any] = {}
    where, stem = "evmperf gitlab pipeline", "nightly"
    if options.plan:
        where, stem = str(options.plan), options.plan.stem
        data = yamlfile.read(options.plan)
        plan.checked(data, where, stem)
    names = _words(options.boards) or ([] if options.plan else pipeline.real_boards())
    whole = {name: getattr(options, name) for name in ("release", "repeat", "against", "confirm")}
    whole["images"] = _words(options.images)
    whole["boards"] = [{"board": name} for name in names]
    data |= {name: value for name, value in whole.items() if value}
    if os.environ.get("EVMPERF_INFLUX_URL"):
        data["push"] = True
    own = {name: value for name in ("benchmarks", "profile") if (value := getattr(options, name))}
    data["boards"] = [entry | own for entry in data["boards"]]
    return plan.checked(data, where, stem)


@command("gitlab note", argument("files", nargs="+", type=Path, metavar="FILE"))
def _run_note(options: argparse.Namespace) -> None:
    """Puts Markdown files into notes of the pipeline's merge request, one note per file; the next
    pipeline replaces them. Does nothing outside a merge request.
    """
    request = MergeRequest.of_pipeline()
    if request is None:
        print("no merge request: no note")
        return
    for file in options.files:
        text = inputs.text(file, 4 * limits.MIB)  # GitLab takes 1 000 000 characters
        word = "written" if request.write(file.stem, text) else "replaced"
        print(f"note of {file.stem} {word}")


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()
