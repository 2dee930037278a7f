"""Jobs of made-up benchmarks, run here by LAVA's own test shell scripts instead of on a board."""

import json
import os
import re
import subprocess
from datetime import UTC, datetime, timedelta

import yaml

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.step import CleanUp, Measure, Prepare
from evmperf.commands.lava import joblog
from evmperf.commands.lava.render import HEADER_SCHEMA, JobRequest, render
from evmperf.commands.lava.selection import JobKind, select, steps_of
from evmperf.measure import provenance
from evmperf.model import places
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import Unit
from selftests.support import hostile

BEGAN = datetime(2026, 11, 20, 22, 0, tzinfo=UTC)
END = {"case": "job", "definition": "lava", "result": "pass"}


def number(outputs, name="value"):
    text = outputs.get("number", "").strip()
    if not text.isdigit():
        raise RefusedOutput("this is no number", text)
    return [Reading(name, float(text))]


def steps(board, case, plan):
    size = case.params["size"]
    return [
        Prepare("prepare", f"test {size} != 13", 10),
        *(
            Measure(f"try{n}", f'echo {size}{n} >"$OUT/number"', 10, 0, parse=number, repetition=n)
            for n in range(plan.repeats)
        ),
        CleanUp("clean-up", "true", 10, 0),
    ]


def shared_steps(board, case, plan):
    text = 'echo run >>"$OUT/../runs"; wc -l <"$OUT/../runs" >"$OUT/number"'
    return [Measure("all", text, 10, 0, parse=number, shared="everything")]


def slow_steps(board, case, plan):
    return [Measure("hang", "sleep 30", 1, 0.5, parse=number)]


def made_up(name, steps, labels, repeats=1):
    metric = Metric("value", Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, "Value", low=1, high=9999)
    profile = Profile(tuple(Case(label, {"size": label}) for label in labels), repeats)
    return Benchmark(name, "emmc", name, (name,), (metric,), {"quick": profile}, Place.SHELL, steps)


CATALOGUE = {
    benchmark.name: benchmark
    for benchmark in (
        made_up("plain", steps, ["1", "2"], repeats=2),
        made_up("unlucky", steps, ["13"]),
        made_up("together", shared_steps, ["5", "6"]),
        made_up("slow", slow_steps, ["7"]),
    )
}


def run(board, lava_shell, folder, keyword):
    """The output of a native job of these benchmarks, as LAVA's runner starts its test shell."""
    chosen = select(board, JobKind.NATIVE, "quick", keyword)
    job = yaml.safe_load(render(board, chosen, JobRequest(JobKind.NATIVE, keyword)))
    definition = job["actions"][-1]["test"]["definitions"][0]
    bin_folder = folder / "bin"
    bin_folder.mkdir(parents=True)
    for name in ("lava-test-case", "lava-common-functions", "lava-test-raise"):
        # LAVA puts the interpreter's path in when it makes the overlay.
        (bin_folder / name).write_text(f"#!/bin/sh\n{(lava_shell / name).read_text()}")
        (bin_folder / name).chmod(0o755)
    (bin_folder / "dmesg").write_text("#!/bin/sh\n")  # this machine's console is not ours
    (bin_folder / "dmesg").chmod(0o755)
    # What LAVA 2023.01 writes around the steps (TestRunnerAction).
    text = "\n".join(["set -e", "set -x", *definition["repository"]["run"]["steps"]])
    script = folder / "run.sh"
    script.write_text(text.replace(places.STEP_FOLDER, str(folder / "evmperf")))
    done = subprocess.run(
        ["sh", "-e", script],
        cwd=folder,
        env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "LAVA_RESULT_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout


def log(output, *more):
    """A job's log whose board printed this, and then what `more` says: a line a millisecond, each step's
    output when it ended by the board's clock.
    """
    entries = [{"lvl": "target", "msg": line} for line in output.splitlines()]
    entries += [{"lvl": "results", "msg": message} for message in more]
    moment, booted, text = BEGAN, 0.0, ""
    for entry, after in zip(entries, [*entries[1:], {}], strict=True):
        moment += timedelta(milliseconds=1)
        if ended := re.match(r"step \d+ ([\d.]+) ([\d.]+)", str(after.get("msg"))):
            booted = booted or float(ended[1])
            moment = max(moment, BEGAN + timedelta(seconds=float(ended[2]) - booted))
        text += f"- {json.dumps({'dt': moment.replace(tzinfo=None).isoformat(), **entry})}\n"
    return text


def answered(board, answer, **changes):
    """The log of a job whose board gave this answer to each step."""
    header = {
        "schema": HEADER_SCHEMA,
        "kind": "native",
        "board_file": "virtual.yaml",
        "profile": "quick",
        "benchmarks": "plain",
        "evmperf": "1",
    } | changes
    facts = f"1 {'0' * 16} {provenance.LABEL}"
    fine = hostile.answer(hostile.tar(hostile.member("kernel", b"6.12.1\n"))).splitlines()
    lines = [joblog.header_line(header)]
    lines += [f"@evmperf begin {facts}", *fine, f"@evmperf end {facts}"]
    benchmark = CATALOGUE["plain"]
    for case in benchmark.cases("quick"):
        for step in steps_of(benchmark, board, case, "quick"):
            mark = f"1 {joblog.checksum(step.command)} {benchmark.label(case, step)}"
            lines += [f"@evmperf begin {mark}", *answer.splitlines(), f"@evmperf end {mark}"]
    return log("\n".join(lines), END)
