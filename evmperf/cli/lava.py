"""The command `evmperf lava`: jobs made from the catalogue, submitted, followed, and read back."""

import argparse
from pathlib import Path

from evmperf.app import lavajobs
from evmperf.app.requests import Cancel, Follow, Import, JobState, Judged, Submit
from evmperf.cli.arguments import (
    A_BOARD,
    BOARD,
    IDENTITY,
    PROFILE,
    RESULTS,
    arg,
    command,
    flag,
    group,
    requested,
    several,
)
from evmperf.cli.terminal import note
from evmperf.lava import devices
from evmperf.lava import lab as labs
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
Exit status: 0 complete, and every planned case passed; 1 something failed;
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
    "image: install this and verify that it runs; kernel, dtb, ramdisk, nfsrootfs or modules: "
    "boot these over the network; without ROLE= the name decides (default: boot the installed system)"
)

_SERVER = (
    IDENTITY,
    arg("--timeout", "seconds to wait at most (default: a day)", type=float, default=24 * 3600.0),
)
_NUMBER = arg("job", "its number or its page")
_FILE = arg("--board", "the board file, unless it is in env/")
_JOB = (
    arg("board", f"{A_BOARD}, or a job's file"),
    arg("-k=EXPRESSION", "as pytest's", dest="keyword"),
    arg("--kind", _KIND, choices=("host", "native", "boot"), default="native"),
    PROFILE,
    arg("--release", "SDK release, if the image does not name it"),
    several("--image", "[ROLE=]URL", _IMAGE, dest="images"),
    arg("--device-type", "default: evm- and the board file's name"),
    several("--tag", "TAG", "a tag the device must have", dest="tags"),
    arg("--priority", choices=("low", "medium", "high"), default="medium"),
)
"""The arguments of a job."""

group("lava", _ABOUT)


@command("lava render", "", *_JOB, help="print a complete job")
def _render(options: argparse.Namespace) -> None:
    print(lavajobs.definition(requested(Submit, options), _tell), end="")


@command(
    "lava submit",
    "",
    *_SERVER,
    RESULTS,
    *_JOB,
    flag("--wait", "follow the job to its end"),
    arg("--import", "read its results (with --wait)", dest="read", action="store_true"),
    help="submit a rendered job, or one of a file",
)
def _submit(options: argparse.Namespace) -> int:
    if options.read and not options.wait:
        raise UsageError("--import needs --wait: add --wait")
    status = 0
    for number, page in lavajobs.submit(requested(Submit, options), _tell).jobs:
        print(f"job {number}: {page}", flush=True)
        if options.wait:
            options.job, options.board = str(number), ""
            judged = lavajobs.follow(_follow(options), _tell)
            if options.read:
                status = max(status, _import(options))
            status = max(status, _judge(judged))
    return status


def _follow(options: argparse.Namespace) -> Follow:
    return requested(Follow, options, job=job_number(options.job), timeout_s=options.timeout)


@command("lava wait", "", *_SERVER, _NUMBER, _FILE, help="follow a job to its end")
def _wait(options: argparse.Namespace) -> int:
    return _judge(lavajobs.follow(_follow(options), _tell))


@command("lava verdict", _VERDICT, *_SERVER, _NUMBER, _FILE, help="the outcome of a job")
def _verdict(options: argparse.Namespace) -> int:
    return _judge(lavajobs.ended(_follow(options), _tell))


@command("lava cancel", "", *_SERVER, _NUMBER, help="end a job that runs or waits")
def _cancel(options: argparse.Namespace) -> None:
    lavajobs.cancel(Cancel(job=job_number(options.job), identity=options.identity), _tell)


@command(
    "lava import",
    _IMPORT,
    *_SERVER,
    RESULTS,
    arg("--run-kind", "default: %(default)s", default="lava"),
    several("--fact", "NAME=VALUE", "a further fact of the run"),
    arg("job", "its number, its page, or its log as a file (YAML)"),
    _FILE,
    help="read a finished job into the spool",
)
def _import(options: argparse.Namespace) -> int:
    facts = dict(word.split("=", 1) for word in getattr(options, "fact", ()) if "=" in word)
    done = lavajobs.read(requested(Import, options, facts=facts), _tell)
    if not done.folder:
        print(f"{done.name}: nothing to read: a lab-host job keeps and pushes its results itself")
        return 0
    word = "read" if done.new else "already read before, left unchanged"
    print(f"{done.name}: {word}: {done.folder}\n{done.outcome}")
    return done.status


def _judge(judged: Judged) -> int:
    print("\n".join(judged.lines))
    return judged.status


def _tell(news: Reply) -> None:
    if isinstance(news, JobState):
        where = f" on {news.device}" if news.device else ""
        print(f"job {news.job}: {news.state}{where}", flush=True)
    elif isinstance(news, Remark):
        note(news.sentence)


@command(
    "lava device",
    _DEVICE,
    BOARD,
    arg("-o --into=FOLDER", "where (default: here)", type=Path, default=Path()),
    help="write a board's device type and a device",
)
def _device(options: argparse.Namespace) -> None:
    for path in devices.write(boardfile.named(options.board), options.into):
        print(path)


@command(
    "lava lab",
    "",
    arg("action", choices=("up", "down", "status")),
    arg(
        "--board=VARIANT", "the virtual EVM that LAVA boots itself (default: %(default)s)", default="virtual"
    ),
    help="a LAVA of your own on this machine (needs root)",
)
def _lab(options: argparse.Namespace) -> int:
    if options.action == "up":
        lab = labs.up(note, options.board)
        print(f"LAVA is running at {lab.url}; stop it with `evmperf lava lab down`")
        return 0
    if options.action == "down":
        print("LAVA stopped" if labs.down() else "LAVA was not running")
        return 0
    found = labs.running()
    print(
        f"LAVA is running at {found.url}" if found else "LAVA is not running; start it with `make lava-lab`"
    )
    return 0 if found else 1
