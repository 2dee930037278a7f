"""What becomes of steps, boots and their failures, with a real shell below the runner: `scenarios.yaml` says
what each is of.
"""

import functools
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from evmperf.benchmarks.benchmark import Place, Profile
from evmperf.benchmarks.step import CleanUp, Measure, Prepare, SearchStep, Trial
from evmperf.boards.console.booted import identity
from evmperf.measure.bench import ShellReply
from evmperf.measure.runs.spool import read_records
from evmperf.model.errors import BoardError, Interrupted, LabError, RefusedOutput, ToolError
from evmperf.model.records import BootRecord
from evmperf.model.repeats import Repeats
from evmperf.model.results import Direction, Metric, Reading
from evmperf.model.units import Unit
from selftests.support.fakes import SteppingClock, failed_boot, good_boot
from selftests.support.runners import (
    BOOTS,
    CASE,
    FINE,
    RATE,
    A,
    B,
    C,
    make,
    measuring,
    messages,
    on_spool,
    parse,
)

SCENARIOS = yaml.safe_load(Path(__file__).with_name("scenarios.yaml").read_text())
ERRORS = {"tool": ToolError, "board": BoardError, "lab": LabError, "away": Interrupted}
METRICS = {"rate": RATE, "other": Metric("other", Unit.PERCENT, Direction.LOWER, "Other")}
SLOT = (
    "\r\nU-Boot 2025.01-ti\r\n[    0.0] Linux version 6.12.17 #1 SMP\r\n"
    "[    0.1] Kernel command line: root=/dev/mmcblk1p{} rw\r\n"
)


class Uboot:
    """A prompt at which a command says this; what has more lines than one has failed."""

    files = None

    def __init__(self, said):
        self.said = said

    def run(self, command, timeout_s):
        return ShellReply(int("\n" in self.said), self.said)


def act(said):
    """What becomes of an answer."""
    if said == "fine":
        return None
    if said == "cut":
        return lambda reply: ShellReply(0, reply.text[:60])
    ((kind, message),) = said.items()
    return ERRORS[kind](message)


def boot(said):
    """How a boot goes."""
    if not isinstance(said, dict):
        return good_boot(said)
    ((how, what),) = said.items()
    return {
        "late": lambda: good_boot(what, bound_ns=70_000_000),
        "fails": lambda: failed_boot(BoardError(what)),
        "mute": lambda: failed_boot(None),
        "slot": lambda: replace(good_boot(), system=identity(SLOT.format(what))),
        "lab": lambda: LabError(what),
    }[how]()


def trials(said):
    """A search that tries these."""
    for one in said:
        if isinstance(one, dict):
            if "nothing" in one:
                raise RefusedOutput(one["nothing"])
            return [Reading("rate", float(one["found"]))]
        assert one != "begun", "nobody shall begin"
        command = "exit 1" if one == "fails" else f'echo {one} >"$OUT/x"'
        (reading,) = yield Trial(f"try {one}", command, 10, parse=parse)
        assert reading == Reading("rate", float(one))
    return []


def steps(scenario, folder, case):
    """The steps of a case."""
    made = []
    if command := scenario.get("shared"):
        counted = f"echo x >>{folder}/count; {command}".replace("TMP", str(folder))
        row = functools.partial(parse, name=case.label)
        made.append(Measure("table", counted, 10, parse=row, shared="table"))
    if "uboot" in scenario:
        made.append(Measure("step0", "time mmc read", 10, parse=lambda o: parse({"x": o["console"]})))
    default = [] if made or "search" in scenario else [{"says": 12.5}]
    for number, said in enumerate(scenario.get("steps", default)):
        ((kind, what),) = said.items()
        command = str(what).replace("TMP", str(folder))
        if kind in ("says", "run"):
            command = f'echo {what} >"$OUT/x"' if kind == "says" else command
            made.append(measuring(command, f"step{number}", number))
        else:
            made.append({"prepare": Prepare, "clean-up": CleanUp}[kind](f"step{number}", command, 10))
    if search := scenario.get("search"):
        at = sum(isinstance(step, Prepare) for step in made)
        made.insert(at, SearchStep("search", lambda: trials(search), 30, 3))
    return made


def benchmark(scenario, folder):
    """The benchmark of a scenario."""
    if "boots" in scenario:
        return BOOTS
    cases = (A, B, C) if "shared" in scenario else (CASE,)
    return make(
        steps=lambda board, case, plan: steps(scenario, folder, case),
        metrics=tuple(METRICS[name] for name in scenario.get("metrics", ["rate"])),
        profiles={"quick": Profile(cases, scenario.get("repeats", 1))},
        place=Place.UBOOT if "uboot" in scenario else Place.SHELL,
        tools=tuple(scenario.get("tools", ())),
    )


def check(result, wanted, folder):
    """Hold a result against what it is to be."""
    assert result.status == wanted["status"], result.failures
    metric = "boot_time" if result.driver == "boot" else "rate"
    if metric in wanted or result.status in ("refused", "failed"):
        assert result.values(metric) == wanted.get(metric, [])
    if "repetitions" in wanted:
        assert [s.repetition for s in result.samples if s.metric == metric] == wanted["repetitions"]
    said = messages(result)
    if "failures" in wanted or result.status == "measured":
        patterns = wanted.get("failures", [])
        assert len(said) == len(patterns), said
        assert all(re.fullmatch(one, text, re.DOTALL) for one, text in zip(patterns, said, strict=True)), said
    if "steps" in wanted:
        assert [failure.step for failure in result.failures] == wanted["steps"]
    for failure in result.failures if "kept" in wanted else ():
        assert failure.refused
        assert (folder / failure.raw).read_text().strip() == wanted["kept"]
    if "trials" in wanted:
        tried = {one["step"]: one["rate"] for one in result.conditions.get("trials", [])}
        assert tried == (wanted["trials"] or {})
    assert result.conditions.items() >= wanted.get("conditions", {}).items()
    assert result.tool_s == wanted.get("tool_s", result.tool_s)


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_becomes_of(lab, tmp_path, name):
    scenario = SCENARIOS[name]
    given = {"boots": map(boot, scenario.get("boots", ())), "reach": map(act, scenario.get("reach", ()))}
    if "uboot" in scenario:
        given |= {"shell": Uboot(scenario["uboot"]), "clock": SteppingClock(7.0)}
    if cycles := scenario.get("cycles"):
        given["repeats"] = Repeats(boots=cycles)
    if "rounds" in scenario:
        given["repeats"] = Repeats(scenario["rounds"])
    runner, found = lab(map(act, scenario.get("answers", ())), **given), benchmark(scenario, tmp_path)
    wanted = scenario["gives"] if isinstance(scenario["gives"], list) else [scenario["gives"]]
    try:
        for case in found.cases("quick"):
            runner.measure(found, case)
        assert "ends" not in scenario
    except LabError as error:
        assert scenario["ends"] in str(error)  # noqa: PT017  # most do not end
    results = on_spool(runner)
    for result, one in zip(results, wanted, strict=True):
        check(result, one, runner.spool.folder)

    assert runner.bench.abandoned == scenario.get("abandoned", "boots" in scenario and runner.bench.abandoned)
    touched = {name for name in ("measured", "cleaned") if (tmp_path / name).exists()}
    assert touched == {*scenario.get("there", ())}
    if executed := scenario.get("executed"):
        assert (tmp_path / "count").read_text().count("x") == executed
    boots = [r for r in read_records(runner.spool.folder) if isinstance(r, BootRecord)]
    if "post_mortem" in scenario:
        assert [one.post_mortem for one in boots] == scenario["post_mortem"]
        assert {one.failure.phase for one in boots if one.failure} <= {"login prompt"}
    for number in scenario.get("late", ()):
        assert {mark.error_s for mark in boots[number].marks if mark.phase != "power_on"} == {0.07}
    if "uboot" not in scenario and "ends" not in scenario:  # it costs its case only
        after = messages(runner.measure(FINE, CASE))
        assert len(after) == len(scenario.get("then", ()))
        assert all(map(re.fullmatch, scenario.get("then", ()), after))
        assert bool(runner.broken) == bool(after)
    assert runner.bench.reached == 1 or not (scenario.get("then") and "reach" in scenario)
