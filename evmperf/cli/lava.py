"""The command `evmperf lava`: jobs made from the catalogue, submitted, followed, and read back."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from evmperf.app import lavajobs
from evmperf.app.requests import Cancel, Follow, Import, JobState, Judged, Submit
from evmperf.lava import devices
from evmperf.lava.lab import control
from evmperf.lava.server import job_number
from evmperf.measure import boardfile
from evmperf.model.errors import UsageError
from evmperf.model.replies import Remark, Reply

_ABOUT = """\
The same benchmarks as LAVA jobs, with the same results.

  evmperf lava render am64x -k emmc --kind native > job.yaml
  evmperf lava submit am64x -k emmc --kind native --wait --import
  evmperf lava verdict 1234

The server is EVMPERF_LAVA_URL with EVMPERF_LAVA_TOKEN, else lavacli's default identity, else the
lab that `make lava-lab` has started on this machine. docs/lava.md says more.
"""

_DAY_S = 24 * 3600.0


def add_parsers(subparsers: Any) -> None:
    """Add `lava` and its sub-commands; each sets `func`, a callable (args) -> exit status."""
    raw = argparse.RawDescriptionHelpFormatter
    top = subparsers.add_parser("lava", description=_ABOUT, formatter_class=raw)
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    render = commands.add_parser("render", help="print a complete job")
    _add_job(render)
    render.set_defaults(func=_render)

    submit = commands.add_parser("submit", help="submit a job made like `render`'s, or of a file")
    _add_job(submit)
    submit.add_argument("--wait", action="store_true", help="follow the job to its end")
    submit.add_argument(
        "--import", dest="read", action="store_true", help="and read its results (with --wait)"
    )
    _add_server(submit)
    _add_results(submit)
    submit.set_defaults(func=_submit)

    wait = commands.add_parser("wait", help="follow a job to its end")
    _add_number(wait)
    _add_board(wait)
    wait.set_defaults(func=_wait)

    read = commands.add_parser(
        "import",
        help="read a finished job's results into the spool",
        description="Reads the raw output in the log of a native or boot-time job with the "
        "parsers that a desk run uses. Lab-host jobs keep their results themselves. A job that "
        "was read before is left alone.",
    )
    read.add_argument("job", help="its number, its page, or its log as a file (YAML)")
    _add_board(read)
    read.add_argument("--run-kind", default="lava", help="default: %(default)s")
    read.add_argument(
        "--fact", action="append", default=[], metavar="NAME=VALUE", help="one more fact to keep with the run"
    )
    _add_server(read)
    _add_results(read)
    read.set_defaults(func=_import)

    verdict = commands.add_parser(
        "verdict",
        help="the outcome of a job",
        description="Exit status 0: complete, and every case it should have measured passed; "
        "1: something failed; 3: LAVA or the lab failed.",
    )
    _add_number(verdict)
    _add_board(verdict)
    verdict.set_defaults(func=_verdict)

    cancel = commands.add_parser("cancel", help="end a job that runs or waits")
    _add_number(cancel)
    cancel.set_defaults(func=_cancel)

    device = commands.add_parser(
        "device",
        help="write a board's device type, and a device to fill in",
        description="Writes device-types/evm-BOARD.jinja2 and devices/BOARD-01.jinja2 below a "
        "folder, as they lie in /etc/lava-server/dispatcher-config on the server. A device that is "
        "there already is left alone.",
    )
    device.add_argument("board", help="a board file, as for pytest --lg-env")
    device.add_argument(
        "-o", "--into", type=Path, default=Path(), metavar="FOLDER", help="where (default: here)"
    )
    device.set_defaults(func=_device)

    lab = commands.add_parser("lab", help="a LAVA of your own on this machine (needs root)")
    lab.add_argument("action", choices=("up", "down", "status"))
    lab.add_argument(
        "--board",
        default="virtual",
        metavar="VARIANT",
        help="which virtual EVM LAVA boots itself (default: %(default)s)",
    )
    lab.set_defaults(func=_lab)


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("board", help="a board file, as for pytest --lg-env, or a job's file")
    parser.add_argument("-k", dest="keyword", default="", metavar="EXPRESSION", help="as pytest's")
    parser.add_argument(
        "--kind",
        choices=("host", "native", "boot"),
        default="native",
        help="host: pytest on the lab's Labgrid host; native: LAVA boots the board and runs the "
        "commands there; boot: cold boots only (default: %(default)s)",
    )
    parser.add_argument("--profile", choices=("full", "quick"), help="default: the board's")
    parser.add_argument("--release", default="", help="SDK release, where the image does not tell")
    parser.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="[ROLE=]URL",
        help="image: put this on the board, and prove that it runs; or boot parts over the "
        "network: kernel, dtb, ramdisk, nfsrootfs or modules; without ROLE= told from the name "
        "(default: what is installed boots). On the lab's host what pytest's --image takes there",
    )
    parser.add_argument("--device-type", default="", help="default: evm- and the board file's name")
    parser.add_argument("--tag", action="append", default=[], help="a tag the device must have")
    parser.add_argument("--priority", choices=("low", "medium", "high"), default="medium")


def _add_number(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="its number or its page")
    _add_server(parser)


def _add_board(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--board", help="the board file, where the job's is not in env/")


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--identity", default="", help="a server of lavacli's configuration, by its name there"
    )
    parser.add_argument(
        "--timeout", type=float, default=_DAY_S, help="seconds to wait at most (default: a day)"
    )


def _add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, default=Path("results"), help="gets one folder a run")


def _request(options: argparse.Namespace) -> Submit:
    return Submit(
        board=options.board,
        keyword=options.keyword,
        kind=options.kind,
        profile=options.profile or "",
        release=options.release,
        images=tuple(options.image),
        device_type=options.device_type,
        tags=tuple(options.tag),
        priority=options.priority,
        identity=getattr(options, "identity", ""),
    )


def _render(options: argparse.Namespace) -> int:
    print(lavajobs.definition(_request(options), _tell), end="")
    return 0


def _submit(options: argparse.Namespace) -> int:
    if options.read and not options.wait:
        raise UsageError("--import needs --wait: add --wait")
    status = 0
    for number, page in lavajobs.submit(_request(options), _tell).jobs:
        print(f"job {number}: {page}", flush=True)
        if options.wait:
            options.job, options.board = str(number), ""
            judged = lavajobs.follow(_follow(options), _tell)
            if options.read:
                status = max(status, _import(options))
            status = max(status, _judge(judged))
    return status


def _follow(options: argparse.Namespace) -> Follow:
    return Follow(
        job=job_number(options.job),
        board=options.board or "",
        identity=options.identity,
        timeout_s=options.timeout,
    )


def _wait(options: argparse.Namespace) -> int:
    return _judge(lavajobs.follow(_follow(options), _tell))


def _verdict(options: argparse.Namespace) -> int:
    return _judge(lavajobs.outcome(_follow(options), _tell))


def _cancel(options: argparse.Namespace) -> int:
    lavajobs.cancel(Cancel(job=job_number(options.job), identity=options.identity), _tell)
    return 0


def _import(options: argparse.Namespace) -> int:
    request = Import(
        job=options.job,
        results=str(options.results),
        board=options.board or "",
        identity=options.identity,
        run_kind=getattr(options, "run_kind", "lava"),
        facts=dict(word.split("=", 1) for word in getattr(options, "fact", ()) if "=" in word),
    )
    done = lavajobs.read(request, _tell)
    if not done.folder:
        print(f"{done.name}: nothing to read: a lab-host job keeps and pushes its results itself")
        return 0
    word = "read" if done.new else "already read before, left unchanged"
    print(f"{done.name}: {word}: {done.folder}")
    print(done.outcome)
    return done.status


def _judge(judged: Judged) -> int:
    print("\n".join(judged.lines))
    return judged.status


def _tell(news: Reply) -> None:
    if isinstance(news, JobState):
        where = f" on {news.device}" if news.device else ""
        print(f"job {news.job}: {news.state}{where}", flush=True)
    elif isinstance(news, Remark):
        print(news.sentence, file=sys.stderr)


def _device(options: argparse.Namespace) -> int:
    for path in devices.write(boardfile.named(options.board), options.into):
        print(path)
    return 0


def _lab(options: argparse.Namespace) -> int:
    if options.action == "up":
        lab = control.up(lambda line: print(line, file=sys.stderr, flush=True), options.board)
        print(f"LAVA is running at {lab.url}; stop it with `evmperf lava lab down`")
        return 0
    if options.action == "down":
        print("LAVA stopped" if control.down() else "LAVA was not running")
        return 0
    found = control.running()
    print(
        f"LAVA is running at {found.url}" if found else "LAVA is not running; start it with `make lava-lab`"
    )
    return 0 if found else 1
