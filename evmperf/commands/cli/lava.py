"""The command `evmperf lava`: jobs made from the catalogue, submitted, followed, and read back."""

import argparse
from pathlib import Path

from evmperf.commands.app import lavajobs
from evmperf.commands.cli.arguments import BOARD, PROFILE, RESULTS, argument, command, filled, group
from evmperf.commands.cli.terminal import note
from evmperf.commands.lava import devices
from evmperf.commands.lava.render import JobRequest
from evmperf.commands.lava.selection import JobKind
from evmperf.commands.lava.server import LavaJob, connect, job_number
from evmperf.measure import boardfile
from evmperf.model import inputs, limits
from evmperf.model.errors import UsageError
from evmperf.model.facts import given_facts

_JOB = (
    argument("board", help="a board file, as for pytest --lg-env, or a job's file"),
    argument("-k", default="", dest="keyword", metavar="EXPRESSION", help="as pytest's"),
    argument(
        "--kind",
        default="native",
        choices=list(JobKind),
        help=(
            "host: pytest on the lab's Labgrid host; native: LAVA boots the board and runs the "
            "commands there; boot: cold boots only (default: %(default)s)"
        ),
    ),
    PROFILE,
    argument("--release", default="", help="SDK release, if the image does not name it"),
    argument(
        "--image",
        default="",
        metavar="URL",
        help="install this whole image and verify that it runs (default: boot the installed system)",
    ),
    argument("--device-type", default="", help="default: evm- and the board file's name"),
    argument(
        "--tag", action="append", default=[], dest="tags", metavar="TAG", help="a tag the device must have"
    ),
    argument("--priority", default="medium", choices=["low", "medium", "high"]),
)
_WAITING = argument("--timeout", type=float, default=86400.0, help="seconds to wait at most (default: a day)")
_NUMBER = argument("job", type=job_number, help="its number or its page")
_FILE = argument("--board", default="", help="the board file, unless it is in env/")
group(
    "lava",
    """The same benchmarks as LAVA jobs, with the same results.

  evmperf lava render am64x -k emmc --kind native > job.yaml
  evmperf lava submit am64x -k emmc --kind native --wait --import
  evmperf lava wait 1234

The server is EVMPERF_LAVA_URL with EVMPERF_LAVA_TOKEN.
docs/lava.md says more.
""",
)


@command("lava render", *_JOB)
def _render(options: argparse.Namespace) -> None:
    """print a complete job"""
    print(_definition(options), end="")


def _definition(options: argparse.Namespace) -> str:
    return lavajobs.definition(options.board, filled(JobRequest, options), options.profile, note)


@command(
    "lava submit",
    _WAITING,
    RESULTS,
    *_JOB,
    argument("--wait", action="store_true", help="follow the job to its end"),
    argument("--import", action="store_true", dest="read", help="read its results (with --wait)"),
)
def _submit(options: argparse.Namespace) -> int:
    """submit a rendered job, or one of a file"""
    if options.read and not options.wait:
        raise UsageError("--import needs --wait: add --wait")
    file = Path(options.board)
    given = inputs.text(file, limits.LAVA_JOB_BYTES) if file.is_file() else ""
    if "\njob_name:" in f"\n{given}":
        options.board, text = "", given  # a job names its board file
    else:
        text = _definition(options)
    status = 0
    server = connect()
    for number in server.submit(text):
        print(f"job {number}: {server.page(number)}", flush=True)
        if options.wait:
            job = server.wait(number, options.timeout, _tell)
            if options.read:
                options.job = number
                status = max(status, _import(options))
            status = max(status, lavajobs.judge(server, job, options.board))
    return status


@command("lava wait", _WAITING, _NUMBER, _FILE, listed="follow a job to its end, and judge it")
def _wait(options: argparse.Namespace) -> int:
    """Exit status: 0 complete, and every planned case passed; 1 something failed;
    3 LAVA or the lab failed.
    """
    server = connect()
    job = server.wait(options.job, options.timeout, _tell)
    return lavajobs.judge(server, job, options.board)


@command(
    "lava import",
    RESULTS,
    argument("--run-kind", default="lava", help="default: %(default)s"),
    argument("--fact", action="append", default=[], metavar="NAME=VALUE", help="a further fact of the run"),
    argument("job", help="its number, its page, or its log as a file (YAML)"),
    _FILE,
    listed="read a finished job into the spool",
)
def _import(options: argparse.Namespace) -> int:
    """Reads the raw output in the log of a native or boot-time job with the parsers of a desk run. Lab-host
    jobs keep their results themselves. A job that was read before is not read again.
    """
    name, run, is_new = lavajobs.read(
        connect,
        str(options.job),
        options.results,
        board=options.board,
        kind=getattr(options, "run_kind", "lava"),
        facts=given_facts(getattr(options, "fact", ())),
    )
    if run is None:
        print(f"{name}: nothing to read: a lab-host job keeps and pushes its results itself")
        return 0
    word = "read" if is_new else "already read before, left unchanged"
    print(f"{name}: {word}: {options.results / run.id}\n{run.outcome}")
    return run.exit_status or 0


def _tell(job: LavaJob) -> None:
    where = f" on {job.actual_device}" if job.actual_device else ""
    print(f"job {job.id}: {job.state}{where}", flush=True)


@command(
    "lava device",
    BOARD,
    argument("-o", "--into", type=Path, default=".", metavar="FOLDER", help="where (default: here)"),
    listed="write a board's device type and a device",
)
def _device(options: argparse.Namespace) -> None:
    """Writes device-types/evm-BOARD.jinja2 and devices/BOARD-01.jinja2 below a folder, as in
    /etc/lava-server/dispatcher-config on the server. An existing device is not changed.
    """
    for path in devices.write(boardfile.named(options.board), options.into):
        print(path)
