"""`evmperf case`: one case packed to post, and measured again."""

import argparse
import socket
from pathlib import Path

from evmperf.commands.app import judging, why
from evmperf.commands.app.requests import Reproduce, Why
from evmperf.commands.cli.arguments import RESULTS, RUN, argument, command, group, requested
from evmperf.measure.runs import casefile, history, spool
from evmperf.model.errors import LabError
from evmperf.model.outlets import line
from evmperf.model.stats import rounded
from evmperf.publish.pages import look

group("case", "One case of a run as a file, and its measurement on another board (docs/ab.md).")


@command(
    "case pack",
    RUN,
    RESULTS,
    argument("case", help="BENCHMARK CASE, as one word in quotes"),
    argument("-o", type=Path, dest="output", metavar="FILE.evmperf", required=True),
)
def _case(options: argparse.Namespace) -> None:
    """Pack one case of a run into a file to post: samples, raw outputs, facts, state, console. Host names,
    addresses, MACs, serial numbers and keys are replaced; the file's content is listed. `evmperf show`,
    `why`, `compare` and `case measure` read the file.
    """
    folder = history.run_folder(options.run, options.results)
    benchmark, _, case = options.case.partition(" ")
    packed, listed = casefile.pack(folder, benchmark, case, [socket.gethostname()])
    try:
        options.output.write_bytes(packed)
    except OSError as error:
        raise LabError(f"{options.output}: cannot be written: {error.strerror}") from None
    print("\n".join(map(line, [f"{options.output} ({len(packed)} bytes) has:", *listed, ""])))
    folder = casefile.unpack(options.output)
    (answer, *_) = why.explain(Why(folder=str(folder), case=options.case)).answers
    (result, *_) = spool.read_results(folder)
    words = {"run": spool.read_run(folder), "result": result, "answer": answer}
    print(look.render("commands/cli/case.txt.j2", name=options.output.name, **words))


@command(
    "case measure",
    argument("file", type=Path, metavar="FILE.evmperf"),
    argument("--lg-env", dest="board", metavar="BOARD.yaml", required=True),
    RESULTS,
    epilog="""Exit status: that of the measurement, else that of `evmperf compare`.""",
)
def _reproduce(options: argparse.Namespace) -> int:
    """Measure the case of a case file on a board in the same way, and compare."""
    done = judging.reproduce(requested(Reproduce, options))
    for verdict in done.judgement.verdicts:
        both = (("there", verdict.baseline), ("here", verdict.value))
        said = (f"{side} {'not known' if v is None else f'{rounded(v)} {verdict.unit}'}" for side, v in both)
        print(line(f"{verdict.key}: {verdict.outcome} ({', '.join(said)})"))
    print(line(f"measured into {done.folder}"))
    return done.status
