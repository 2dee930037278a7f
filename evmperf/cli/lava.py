"""The command `evmperf lava`: jobs made from the catalogue, submitted, followed, and read back."""

import argparse
import functools
import sys
from pathlib import Path
from typing import Any

from evmperf.app import lavajobs
from evmperf.app.requests import Cancel, Follow, Import, JobState, Judged, Submit
from evmperf.cli import arguments
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

_IMPORT = """\
Reads the raw output in the log of a native or boot-time job with the parsers of a desk run. Lab-host
jobs keep their results themselves. A job that was read before is not read again.
"""
_VERDICT = """\
Exit status: 0 complete, and every case that it should have measured passed; 1 something failed;
3 LAVA or the lab failed.
"""
_DEVICE = """\
Writes device-types/evm-BOARD.jinja2 and devices/BOARD-01.jinja2 below a folder, as in
/etc/lava-server/dispatcher-config on the server. An existing device is not changed.
"""
_KIND = (
    "host: pytest on the lab's Labgrid host; native: LAVA boots the board and runs the commands there; "
    "boot: cold boots only (default: %(default)s)"
)
_IMAGE = (
    "image: put this on the board and prove that it runs; kernel, dtb, ramdisk, nfsrootfs or modules: "
    "boot these over the network; without ROLE= the name tells (default: what is installed boots)"
)

_DAY_S = 24 * 3600.0


def add_parsers(subparsers: Any) -> None:
    """Add `lava` and its sub-commands."""
    commands = arguments.group(subparsers, "lava", _ABOUT)
    add, server = functools.partial(arguments.command, commands), ("--identity",)
    _add_job(add("render", _render, "", help="print a complete job"))

    submit = add("submit", _submit, "", *server, "--results", help="submit a rendered job, or one of a file")
    _add_job(submit)
    submit.add_argument("--wait", action="store_true", help="follow the job to its end")
    submit.add_argument("--import", dest="read", action="store_true", help="read its results (with --wait)")

    wait = add("wait", _wait, "", *server, help="follow a job to its end")
    read = add("import", _import, _IMPORT, *server, "--results", help="read a finished job into the spool")
    read.add_argument("--run-kind", default="lava", help="default: %(default)s")
    text = "a further fact of the run"
    read.add_argument("--fact", action="append", default=[], metavar="NAME=VALUE", help=text)
    verdict = add("verdict", _verdict, _VERDICT, *server, help="the outcome of a job")
    cancel = add("cancel", _cancel, "", *server, help="end a job that runs or waits")
    for parser in (wait, verdict, cancel):
        parser.add_argument("job", help="its number or its page")
    read.add_argument("job", help="its number, its page, or its log as a file (YAML)")
    for parser in (wait, verdict, read):
        parser.add_argument("--board", help="the board file, unless it is in env/")
    for parser in (submit, wait, verdict, read, cancel):
        text = "seconds to wait at most (default: a day)"
        parser.add_argument("--timeout", type=float, default=_DAY_S, help=text)

    device = add("device", _device, _DEVICE, "board", help="write a board's device type and a device")
    text = "where (default: here)"
    device.add_argument("-o", "--into", type=Path, default=Path(), metavar="FOLDER", help=text)

    lab = add("lab", _lab, "", help="a LAVA of your own on this machine (needs root)")
    lab.add_argument("action", choices=("up", "down", "status"))
    text = "the virtual EVM that LAVA boots itself (default: %(default)s)"
    lab.add_argument("--board", default="virtual", metavar="VARIANT", help=text)


def _add_job(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("board", help=f"{arguments.A_BOARD}, or a job's file")
    add("-k", dest="keyword", default="", metavar="EXPRESSION", help="as pytest's")
    add("--kind", choices=("host", "native", "boot"), default="native", help=_KIND)
    add("--profile", choices=("full", "quick"), default="", help="default: the board's")
    add("--release", default="", help="SDK release, where the image does not tell")
    add("--image", action="append", default=[], metavar="[ROLE=]URL", help=_IMAGE)
    add("--device-type", default="", help="default: evm- and the board file's name")
    add("--tag", action="append", default=[], help="a tag the device must have")
    add("--priority", choices=("low", "medium", "high"), default="medium")


def _request(options: argparse.Namespace) -> Submit:
    return Submit(
        board=options.board,
        keyword=options.keyword,
        kind=options.kind,
        profile=options.profile,
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
