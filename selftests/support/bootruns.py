"""Runs of made-up boots, with the console of each."""

from evmperf.benchmarks.families.boot import record
from evmperf.boards.console.marks import ObservedBoot, Phase, find, seconds
from evmperf.boards.console.record import HEADER, POWER_ON, ConsoleRecord
from evmperf.measure.runs.spool import append_records
from evmperf.model.results import Sample
from selftests.support import spools

LOADER = ((0.1, "U-Boot 2025.01 (Jan 01 2025)\r\n"), (0.9, "\r\nStarting kernel ...\r\n"))


def written(folder, boots, name="r1", **facts):
    """The folder of a run with one case of boots, 100 s apart: of each, seconds since power-on and texts."""
    run = spools.a_run(board="j7200-evm", profile="full", id=name)
    for fact, value in facts.items():
        setattr(run.facts, fact, value)
    observed, lines, samples = [], [], []
    for number, said in enumerate(boots):
        spoken = [(0.0, "#", POWER_ON), *((at_s, "<", text) for at_s, text in said)]
        times = [(round((100 * number + at_s) * 1e9), kind, text.encode()) for at_s, kind, text in spoken]
        records = [ConsoleRecord(ns, ns, kind, text) for ns, kind, text in times]
        marks = find(records, "login: ")
        observed.append(ObservedBoot("shell", "", run.started_ns + number, 4.0, marks))
        lines += [one.line() for one in records]
        boot_s = seconds(marks, Phase.STARTING_KERNEL, Phase.PROMPT) or 0.0
        samples.append(Sample("boot_time", boot_s, "s", number, 1))
    case = {"benchmark": "boot_time_mmcsd", "driver": "boot", "case": "default_rootfs"}
    more = {"started_ns": run.started_ns, "duration_s": 9.0, "params": {"kernel_arguments": ""}}
    made = spools.write(folder, run, [spools.a_result(run, samples=tuple(samples), **case, **more)])
    append_records(made, [record(boot) for boot in observed])
    (made / "console.log").write_bytes(HEADER + b"".join(lines))
    return made
