"""`evmperf why`, `case` and `reproduce`: one case explained, packed to post, and measured again."""

import argparse
import socket
from collections.abc import Iterator
from pathlib import Path

from evmperf.app import judging, why
from evmperf.app.requests import Explained, Reproduce, Why
from evmperf.cli.arguments import command, requested
from evmperf.model.errors import LabError
from evmperf.model.outlets import line
from evmperf.model.stats import rounded
from evmperf.runs import casefile, history, spool
from evmperf.runs.history import run_folder


@command("why")
def _why(options: argparse.Namespace) -> None:
    folder = run_folder(options.run, options.results)
    against = options.against
    if against and not against.startswith(why.GUIDE_FILE):
        against = str(run_folder(against, options.results))
    request = Why(folder=str(folder), case=options.case, against=against)
    print("\n".join(map(line, _lines(why.explain(request)))))


def _lines(explained: Explained) -> Iterator[str]:
    if not explained.answers:
        none = f"no published figures of {explained.board}; name a good run: --against RUN"
        worse = f"no figure is worse than {explained.against}"
        yield f"{explained.run}: {worse if explained.against else none}"
    for answer in explained.answers:
        yield f"{answer.benchmark} {answer.case} {answer.metric}".rstrip() + f": {answer.headline}"
        if answer.published:
            yield f"  published: {answer.published}"
        if answer.known:
            yield f"  all that is known of it: {answer.known}"
        for number, cause in enumerate(answer.causes, 1):
            yield f"  {number}. {cause}"
            if cause.elsewhere:
                yield f"     elsewhere: {cause.elsewhere}"
            yield f"     to prove it: {cause.proof}"
        yield from (f"  {note}" for note in (*answer.notes, answer.unexplained) if note)


@command("case")
def _case(options: argparse.Namespace) -> None:
    folder = history.run_folder(options.run, options.results)
    benchmark, _, case = options.case.partition(" ")
    packed, listed = casefile.pack(folder, benchmark, case, [socket.gethostname()])
    try:
        options.output.write_bytes(packed)
    except OSError as error:
        raise LabError(f"{options.output}: cannot be written: {error.strerror}") from None
    print("\n".join(map(line, [f"{options.output} ({len(packed)} bytes) has:", *listed, ""])))
    print("\n".join(map(line, _sentences(options.output, benchmark, case))))


def _sentences(file: Path, benchmark: str, case: str) -> Iterator[str]:
    folder = casefile.unpack(file)
    run, results = spool.read_run(folder), spool.read_results(folder)
    explained = why.explain(Why(folder=str(folder), case=f"{benchmark} {case}"))
    answer = explained.answers[0]
    kernel = run.facts.kernel or "of unknown version"
    yield f"My {run.board} runs {run.os or 'an unknown system'} {run.release}, kernel {kernel}."
    tools = ", ".join(results[0].tools.values()) or "no tool of its own"
    yield f"evmperf measured {benchmark} {case} (profile {results[0].profile}) with {tools}."
    figure = "no figure" if answer.ours is None else f"{answer.metric} {rounded(answer.ours)} {answer.unit}"
    known = f"{rounded(answer.theirs)} in {answer.release}" if answer.theirs else "no such figure"
    yield f"Result: {figure}; TI published {known}."
    first = answer.causes[0].evidence if answer.causes else "no reading explains it"
    yield f"The board's state around the case: {first}."
    yield f"{file.name} has the rest: evmperf why {file.name}, evmperf reproduce {file.name} --lg-env BOARD."


@command("reproduce")
def _reproduce(options: argparse.Namespace) -> int:
    done = judging.reproduce(requested(Reproduce, options))
    for verdict in done.judgement.verdicts:
        both = (("there", verdict.baseline), ("here", verdict.value))
        said = (f"{side} {'not known' if v is None else f'{rounded(v)} {verdict.unit}'}" for side, v in both)
        print(line(f"{verdict.key}: {verdict.outcome} ({', '.join(said)})"))
    print(line(f"measured into {done.folder}"))
    return done.status
