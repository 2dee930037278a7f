"""The commands `evmperf night` and `evmperf health`."""

import argparse
import time
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evmperf.cli.arguments import command, coordinator
from evmperf.keeping.wanted import Wanted
from evmperf.lava.selection import JobKind, select
from evmperf.measure import boardfile
from evmperf.measure.signals import listening
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.night import closing, plan
from evmperf.night.conductor import NightConductor
from evmperf.night.health import Health, Register
from evmperf.night.journal import open_night, read
from evmperf.night.overlava import LavaNight
from evmperf.night.plan import Job, NightPlan
from evmperf.night.status import StatusPage


@command("night")
def _night(options: argparse.Namespace) -> int:
    wanted = plan.read(options.plan)
    if options.over == "lava":
        wanted = _for_lava(wanted)
    results = (options.results or Path(wanted.results)).absolute()
    said = f"over {options.over}\n{options.plan.read_text()}"
    journal = open_night(results, wanted.name, said, fresh=options.new)
    begun = next((e for e in read(journal.folder) if e["event"] == "begun"), None)
    began = begun["at"] if begun else time.time()
    until = begun["until"] if begun else plan.end_of(wanted, began)
    if begun:
        print(f"going on with {journal.id}, which began at {time.ctime(began)}", flush=True)
    else:
        journal.note("begun", plan=said, until=until)
    print(f"status: {journal.folder / 'status.html'}", flush=True)

    kind = LavaNight if options.over == "lava" else NightConductor
    night = kind(wanted, results, journal, until, lambda line: None)
    night.identity = options.identity
    status = StatusPage(night, began)

    def tell(line: str) -> None:
        done = sum(progress.done for progress in night.progress)
        shown = ", ".join(filter(None, [f"{done}/{len(night.progress)}", status.expected_end()]))
        print(f"{time.strftime('%H:%M:%S')} [{shown}] {line}", flush=True)

    night.tell = tell
    cut = []

    def stop(number: int, _: Any) -> None:
        cut.append(number)
        night.end()

    with listening(stop):
        night.measure()
    if cut:
        status.close()
        journal.close()
        print(f"interrupted: `evmperf night {options.plan}` resumes it")
        return ExitStatus.INTERRUPTED
    ended = closing.close(night, began)
    journal.note("ended", status=ended.status, sentence=closing.sentence(ended))
    status.close()
    journal.close()
    for words, said in ended.failed:
        print(f"{words}: {said}")
    print(f"{closing.sentence(ended)} {journal.folder / 'night.html'}")
    return ended.status


def _for_lava(given: NightPlan) -> NightPlan:
    """The plan with a job for each kind of LAVA job that fits; says what fits none."""

    jobs: list[Job] = []
    for job in given.boards:
        board = boardfile.named(job.board)
        profile = job.profile or board.options.board.profile
        kinds = [JobKind(job.lava)] if job.lava else [JobKind.NATIVE, JobKind.BOOT]
        refused: list[set[str]] = []
        for kind in kinds:
            try:
                chosen = select(board, kind, profile, job.benchmarks)
            except UsageError as error:
                reason = str(error)
                continue
            refused.append({line.partition(":")[0] for line in chosen.refused})
            jobs.append(replace(job, name=f"{job.name}-{kind}", lava=kind.value))
        if not refused:
            raise UsageError(f"{job.name}: {reason}")
        if job.benchmarks and (none := sorted(set.intersection(*refused))):
            print(f"{job.name}: not over LAVA: {', '.join(none)} (`evmperf lava render` says why)")
    return replace(given, boards=jobs)


@command("health")
def _health(options: argparse.Namespace) -> None:
    register = Register(options.results)
    address = coordinator(options)
    known = register.all(address)
    if options.do == "list":
        for name, health in known.items():
            print(f"{name}  {health.state}  {health.failures} failures in a row  {health.why}")
        if not known:
            print("all boards are well")
        return
    if not options.place:
        raise UsageError("health clear: which board? `evmperf health` lists them")
    if options.place not in known:
        raise UsageError(f"no failures of {options.place}: `evmperf health` lists boards with failures")
    local = register.of(Wanted(options.place)) != Health()
    register.keep(Wanted(options.place, "" if local else address), Health())
    print(f"{options.place} is cleared: nights use it again")
