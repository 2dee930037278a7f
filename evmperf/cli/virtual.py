"""The command `evmperf virtual`: boards that need no hardware."""

import argparse
import dataclasses
import json
from pathlib import Path

from evmperf.cli.arguments import JSON, arg, command, flag, group
from evmperf.cli.terminal import note
from evmperf.model.errors import EvmperfError, LabError
from evmperf.virtual import envfile, image, recipe, release, server
from evmperf.virtual.board import BenchStatus, LabOptions
from evmperf.virtual.client import LabClient, all_benches, terminal

_NAME = "virtual"

_USUAL = "0 is any free one (default: that of env/NAME.yaml, else 0)"
_BOARD = arg("name?=NAME", "the board (default: %(default)s)", default=_NAME)
_ABOUT = """\
A virtual EVM is a QEMU guest that looks like a board in a lab: a serial console on a TCP port, a
network power switch, and a tester (a network namespace) at the other end of its Ethernet cables.
The bench process plays that lab; it runs in the background, one for each board.

  evmperf virtual build            make the software of the virtual EVM (once, some minutes)
  evmperf virtual start            start the bench: console on port 7001, power on port 7002
  evmperf virtual console          watch it (Ctrl-] leaves), in another terminal
  evmperf virtual on               switch the board on
  pytest --lg-env env/virtual.yaml -k emmc
  evmperf virtual stop             switch off and remove everything but the board's disks
"""

_START = """\
Starts the bench of a board, with the power off, and returns when it answers. A board that is
already running with these settings is left alone.

Several boards side by side: give each a name and its own environment file.
  evmperf virtual start board-b --write-env board-b.yaml
  pytest --lg-env board-b.yaml
"""

_RELEASE = """\
Makes the image of a release of a virtual EVM that boots from its card. Releases with different
numbers can be told apart on the running board.
"""
_STOP = "Cuts the power, ends the bench and removes the tester. The disks stay."
_CONSOLE = """\
Connects this terminal to the board's serial console; Ctrl-] leaves. Others may use the console at
the same time: all see all output, and all may type.
"""

group("virtual", _ABOUT)


@command(
    "virtual build",
    "",
    arg("variant*", "which virtual EVMs (default: virtual)", default=[_NAME]),
    flag("--force", "build it even if it is up to date"),
    help="make the software of a virtual EVM unless it is up to date",
)
def _build(args: argparse.Namespace) -> None:
    for variant in args.variant:
        built = image.build(variant, force=args.force, progress=note)
        print(f"image {built.variant} {built.hash} is in {built.directory}")


@command(
    "virtual release",
    _RELEASE,
    arg("variant", "a virtual EVM that boots from a card or disk of its own"),
    arg("file", "file to write: NAME.wic.zst", type=Path),
    arg("--number", "from 1 to 9 (default: 1)", type=int, default=1),
    help="make a release: an image for a virtual EVM's card",
)
def _release(args: argparse.Namespace) -> None:
    release.build(args.variant, args.number, args.file, note)
    print(f"{release.name(args.variant, args.number)} is in {args.file}")


@command(
    "virtual start",
    _START,
    _BOARD,
    arg("--variant", "which virtual EVM the board is (default: virtual, or NAME if it is a variant's)"),
    arg("--serial-port=PORT", f"console's TCP port, {_USUAL}", type=int),
    arg("--power-port=PORT", f"power switch's port, {_USUAL}", type=int),
    flag("--fresh", "make new disks (otherwise they are kept)"),
    arg("--write-env=FILE", "write a copy of the variant's env/*.yaml with this board's ports", type=Path),
    flag("--foreground", "stay in the foreground; Ctrl-C stops it"),
    arg(
        "--qemu-option=OPTION",
        "one more word for QEMU's command line, for experiments; give it as --qemu-option=-d",
        action="append",
    ),
    help="start the bench of a board",
)
def _start(args: argparse.Namespace) -> int:
    bench = LabClient(args.name)
    variant = args.variant or (args.name if recipe.exists(args.name) else _NAME)
    if args.foreground:
        return _run(bench, variant, args)
    asked = {name: getattr(args, name) for name in ("serial_port", "power_port", "fresh")}
    started = bench.start(variant, **asked, qemu_options=args.qemu_option)
    ports = bench.record
    _write_env(args.write_env, variant, ports.serial_port, ports.power_port)
    word = "started" if started else "is already running"
    print(f"board {bench.name} ({variant}) {word}: serial {ports.serial_port}, power {ports.power_port}")
    if not started:
        _warn_of_old_image(bench, variant)
    return 0


def _warn_of_old_image(bench: LabClient, variant: str) -> None:
    """A running bench keeps the image it was started with, even when another has been built."""
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


def _run(bench: LabClient, variant: str, args: argparse.Namespace) -> int:
    serial, power = envfile.usual_ports(bench.name, args.serial_port, args.power_port)

    def ready(record: BenchStatus) -> None:
        _write_env(args.write_env, variant, record.serial_port, record.power_port)
        ports = f"serial {record.serial_port}, power {record.power_port}"
        print(f"board {bench.name} ({variant}) started: {ports}", flush=True)

    more = tuple(args.qemu_option or ())
    options = LabOptions(bench.name, variant, serial, power, args.fresh, more)
    server.run_foreground(options, ready)
    return 0


def _write_env(copy: Path | None, variant: str, serial_port: int, power_port: int) -> None:
    if copy:
        envfile.write(envfile.source(variant), copy, serial_port=serial_port, power_port=power_port)


@command("virtual stop", _STOP, _BOARD, flag("--all", "all boards"), help="stop the bench of a board")
def _stop(args: argparse.Namespace) -> None:
    for bench in all_benches() if args.all else [LabClient(args.name)]:
        stopped = bench.stop()
        if stopped or not args.all:
            print(f"board {bench.name} {'stopped' if stopped else 'was not running'}")


@command("virtual on", "", _BOARD, help="switch the power of a board on; no effect if it is on")
def _on(args: argparse.Namespace) -> None:
    LabClient(args.name).on()


@command("virtual off", "", _BOARD, help="switch the power of a board off; no effect if it is off")
def _off(args: argparse.Namespace) -> None:
    LabClient(args.name).off()


@command("virtual console", _CONSOLE, _BOARD, help="the board's serial console in this terminal")
def _console(args: argparse.Namespace) -> None:
    bench = LabClient(args.name)
    port = bench.record.serial_port
    power = "" if bench.status().power else f"; the power is off: `evmperf virtual on {args.name}`"
    print(f"console of board {args.name}, Ctrl-] leaves{power}")
    terminal(port)
    print(f"\nleft the console of board {args.name}")


@command("virtual status", "", JSON, help="list all boards that were ever started here")
def _status(args: argparse.Namespace) -> None:
    found: list[tuple[LabClient, BenchStatus | None, str]] = []
    for bench in all_benches():
        if not bench.running:
            found.append((bench, None, "stopped"))
            continue
        try:
            found.append((bench, bench.status(), ""))
        except LabError as error:
            found.append((bench, None, str(error)))
    if args.json:
        boards = {
            bench.name: dataclasses.asdict(status) if status else {"name": bench.name, "error": why}
            for bench, status, why in found
        }
        print(json.dumps(boards, indent=1))
    elif not found:
        print("no virtual board has been started: run `evmperf virtual start`")
    else:
        for bench, status, reason in found:
            print(_line(status) if status else f"{bench.name}: {reason}")


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
