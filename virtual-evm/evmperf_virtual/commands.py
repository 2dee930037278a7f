"""The command `evmperf virtual`: boards that need no hardware."""

import argparse
from pathlib import Path

import msgspec

from evmperf.commands.cli.arguments import JSON, argument, command, group
from evmperf.commands.cli.terminal import note
from evmperf.model.errors import EvmperfError, LabError
from evmperf_virtual import envfile, image, recipe
from evmperf_virtual.board import BenchStatus
from evmperf_virtual.client import LabClient, all_benches

_NAME = "virtual"


_BOARD = argument(
    "name", nargs="?", default="virtual", metavar="NAME", help="the board (default: %(default)s)"
)
group(
    "virtual",
    """A virtual EVM is a QEMU guest that looks like a board in a lab: a serial console on a TCP port, a
network power switch, and a tester (a network namespace) at the other end of its Ethernet cables.
The bench process plays that lab; it runs in the background, one for each board.

  evmperf virtual build            make the software of the virtual EVM (once, some minutes)
  evmperf virtual start            start the bench: console on port 7001, power on port 7002
  python -m serial.tools.miniterm --raw --eol CR socket://127.0.0.1:7001
                                   watch it (Ctrl-] leaves), in another terminal
  evmperf virtual on               switch the board on
  pytest --lg-env env/virtual.yaml -k emmc
  evmperf virtual stop             switch off and remove everything but the board's disks
""",
)


@command(
    "virtual build",
    argument("variant", nargs="*", default=["virtual"], help="which virtual EVMs (default: virtual)"),
    argument("--force", action="store_true", help="build it even if it is up to date"),
)
def _build(args: argparse.Namespace) -> None:
    """make the software of a virtual EVM unless it is up to date"""
    for variant in args.variant:
        built = image.build(variant, force=args.force, progress=note)
        print(f"image {built.variant} {built.hash} is in {built.directory}")


@command(
    "virtual start",
    _BOARD,
    argument(
        "--variant",
        default="",
        help="which virtual EVM the board is (default: virtual, or NAME if it is a variant's)",
    ),
    argument(
        "--serial-port",
        type=int,
        metavar="PORT",
        help="console's TCP port, 0 is any free one (default: that of env/NAME.yaml, else 0)",
    ),
    argument(
        "--power-port",
        type=int,
        metavar="PORT",
        help="power switch's port, 0 is any free one (default: that of env/NAME.yaml, else 0)",
    ),
    argument("--fresh", action="store_true", help="make new disks (otherwise they are kept)"),
    argument(
        "--write-env",
        type=Path,
        metavar="FILE",
        help="write a copy of the variant's env/*.yaml with this board's ports",
    ),
    listed="start the bench of a board",
)
def _start(args: argparse.Namespace) -> None:
    """Starts the bench of a board, with the power off, and returns when it answers. A board that is
    already running with these settings is left alone.

    Several boards side by side: give each a name and its own environment file.
      evmperf virtual start board-b --write-env board-b.yaml
      pytest --lg-env board-b.yaml
    """
    bench = LabClient(args.name)
    variant = args.variant or (args.name if recipe.exists(args.name) else _NAME)

    def ready(word: str = "started") -> None:
        record = bench.record
        ports = {"serial_port": record.serial_port, "power_port": record.power_port}
        if args.write_env:
            envfile.write(envfile.source(variant), args.write_env, **ports)
        where = f"serial {record.serial_port}, power {record.power_port}"
        print(f"board {bench.name} ({variant}) {word}: {where}", flush=True)

    asked = {name: getattr(args, name) for name in ("serial_port", "power_port", "fresh")}
    if bench.start(variant, **asked):
        ready()
        return
    ready("is already running")
    # It keeps the image it was started with, even when another has been built.
    try:
        current, running = image.load(variant).hash, bench.status().image_hash
    except EvmperfError as error:
        note(f"note: {error}")
        return
    if current != running:
        note(
            f"note: it runs image {running}, but image {current} has been built since; to use it, "
            f"stop the board with `evmperf virtual stop {bench.name}` and start it again"
        )


@command(
    "virtual stop",
    _BOARD,
    argument("--all", action="store_true", help="all boards"),
    listed="stop the bench of a board",
)
def _stop(args: argparse.Namespace) -> None:
    """Cuts the power, ends the bench and removes the tester. The disks stay."""
    for bench in all_benches() if args.all else [LabClient(args.name)]:
        stopped = bench.stop()
        if stopped or not args.all:
            print(f"board {bench.name} {'stopped' if stopped else 'was not running'}")


@command("virtual on", _BOARD)
def _on(args: argparse.Namespace) -> None:
    """switch the power of a board on; no effect if it is on"""
    LabClient(args.name).on()


@command("virtual off", _BOARD)
def _off(args: argparse.Namespace) -> None:
    """switch the power of a board off; no effect if it is off"""
    LabClient(args.name).off()


@command("virtual status", JSON)
def _status(args: argparse.Namespace) -> None:
    """list all boards that were ever started here"""
    boards = {bench.name: _asked(bench) for bench in all_benches()}
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(boards), indent=1).decode())
    elif not boards:
        print("no virtual board has been started: run `evmperf virtual start`")
    else:
        for name, status in boards.items():
            print(_line(status) if isinstance(status, BenchStatus) else f"{name}: {status['error']}")


def _asked(bench: LabClient) -> BenchStatus | dict[str, str]:
    try:
        return bench.status() if bench.running else {"name": bench.name, "error": "stopped"}
    except LabError as error:
        return {"name": bench.name, "error": str(error)}


def _line(status: BenchStatus) -> str:
    power = "on" if status.power else "off"
    if status.power and status.qemu_pid is None and status.last_exit:
        power = f"on, but the board ended: {status.last_exit.reason} {status.last_exit.detail}"
    tester = f"`{status.tester.typed}`" if status.tester else status.tester_reason
    return (
        f"{status.name}: {status.variant}, power {power.strip()} (since {status.since}, "
        f"{status.power_cycles} cycles), serial {status.serial_port}, power switch "
        f"{status.power_port}, tester {tester}"
    )
