"""`evmperf night`, `nightly` and `note`: nights on this host, or in a GitLab pipeline."""

import argparse
import os
from typing import Any

from evmperf.boards import yamlfile
from evmperf.commands.cli.arguments import command, requested, show
from evmperf.commands.gitlab import pipeline
from evmperf.commands.gitlab.note import MergeRequest
from evmperf.commands.night import night, plan
from evmperf.model.errors import UsageError


@command("night")
def _night(options: argparse.Namespace) -> int:
    ended = night.measure(requested(night.MeasureNight, options), show)
    print("\n".join(ended.sentences))
    return ended.status


@command("nightly")
def _run_nightly(options: argparse.Namespace) -> None:
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
    if os.environ.get("EVMPERF_INFLUX_URL"):
        data["push"] = True
    own = {name: value for name in ("benchmarks", "profile") if (value := getattr(options, name))}
    data["boards"] = [entry | own for entry in data["boards"]]
    return plan.checked(data, where, stem, parts=over is pipeline.Over.LAVA_NATIVE)


@command("note")
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
