"""The command `evmperf virtual`: boards that need no hardware."""

import argparse
import dataclasses
import functools
import json
import sys
from pathlib import Path
from typing import Any

from evmperf.cli import arguments
from evmperf.model.errors import EvmperfError, LabError
from evmperf.virtual import envfile, image, recipe, release, server, terminal
from evmperf.virtual.board import BenchStatus, LabOptions, LabRecord
from evmperf.virtual.client import LabClient, all_benches

_NAME = "virtual"

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


def add_parsers(subparsers: Any) -> None:
    """Add `virtual` and its sub-commands."""
    commands = arguments.group(subparsers, "virtual", _ABOUT)
    add = functools.partial(arguments.command, commands)

    build = add("build", _build, "", help="make the software of a virtual EVM unless it is up to date")
    build.add_argument("variant", nargs="*", default=[_NAME], help="which virtual EVMs (default: virtual)")
    build.add_argument("--force", action="store_true", help="build it even if it is up to date")

    release = add("release", _release, _RELEASE, help="make a release: an image for a virtual EVM's card")
    release.add_argument("variant", help="a virtual EVM that boots from a card or disk of its own")
    release.add_argument("file", type=Path, help="what to write: NAME.wic.zst")
    release.add_argument("--number", type=int, default=1, help="from 1 to 9 (default: 1)")

    start = add("start", _start, _START, help="start the bench of a board")
    stop = add("stop", _stop, _STOP, help="stop the bench of a board")
    stop.add_argument("--all", action="store_true", help="all boards")
    on = add("on", _on, "", help="switch the power of a board on; no effect if it is on")
    off = add("off", _off, "", help="switch the power of a board off; no effect if it is off")
    console = add("console", _console, _CONSOLE, help="the board's serial console in this terminal")
    for parser in (start, stop, on, off, console):
        text = "the board (default: %(default)s)"
        parser.add_argument("name", nargs="?", default=_NAME, metavar="NAME", help=text)
    add("status", _status, "", "--json", help="list all boards that were ever started here")

    text = "which virtual EVM the board is (default: virtual, or NAME if it is a variant's)"
    start.add_argument("--variant", help=text)
    usual = "0 is any free one (default: that of env/NAME.yaml, else 0)"
    start.add_argument("--serial-port", type=int, metavar="PORT", help=f"console's TCP port, {usual}")
    start.add_argument("--power-port", type=int, metavar="PORT", help=f"power switch's port, {usual}")
    start.add_argument("--fresh", action="store_true", help="make new disks (otherwise they are kept)")
    text = "write a copy of the variant's env/*.yaml with this board's ports"
    start.add_argument("--write-env", type=Path, metavar="FILE", help=text)
    start.add_argument("--foreground", action="store_true", help="stay in the foreground; Ctrl-C stops it")
    text = "one more word for QEMU's command line, for experiments; give it as --qemu-option=-d"
    start.add_argument("--qemu-option", action="append", metavar="OPTION", help=text)


def _progress(step: str) -> None:
    print(step, file=sys.stderr, flush=True)


def _build(args: argparse.Namespace) -> int:
    for variant in args.variant:
        built = image.build(variant, force=args.force, progress=_progress)
        print(f"image {built.variant} {built.hash} is in {built.directory}")
    return 0


def _release(args: argparse.Namespace) -> int:
    release.build(args.variant, args.number, args.file, _progress)
    print(f"{release.name(args.variant, args.number)} is in {args.file}")
    return 0


def _start(args: argparse.Namespace) -> int:
    bench = LabClient(args.name)
    variant = args.variant or (args.name if recipe.exists(args.name) else _NAME)
    if args.foreground:
        return _run(bench, variant, args)
    started = bench.start(
        variant,
        serial_port=args.serial_port,
        power_port=args.power_port,
        fresh=args.fresh,
        qemu_options=args.qemu_option,
    )
    ports = bench.ports
    _write_env(args.write_env, variant, ports.serial, ports.power)
    word = "started" if started else "is already running"
    print(f"board {bench.name} ({variant}) {word}: serial {ports.serial}, power {ports.power}")
    if not started:
        _warn_of_old_image(bench, variant)
    return 0


def _warn_of_old_image(bench: LabClient, variant: str) -> None:
    """A running bench keeps the image it was started with, even when another has been built."""
    try:
        current, running = image.load(variant).hash, bench.status().image_hash
    except EvmperfError as error:
        print(f"note: {error}", file=sys.stderr)
        return
    if current != running:
        print(
            f"note: it runs image {running}, but image {current} has been built since; to use it, "
            f"stop the board with `evmperf virtual stop {bench.name}` and start it again",
            file=sys.stderr,
        )


def _run(bench: LabClient, variant: str, args: argparse.Namespace) -> int:
    """Serve in this process until Ctrl-C."""
    serial, power = envfile.usual_ports(bench.name, args.serial_port, args.power_port)

    def ready(record: LabRecord) -> None:
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


def _stop(args: argparse.Namespace) -> int:
    for bench in all_benches() if args.all else [LabClient(args.name)]:
        stopped = bench.stop()
        if stopped or not args.all:
            print(f"board {bench.name} {'stopped' if stopped else 'was not running'}")
    return 0


def _on(args: argparse.Namespace) -> int:
    LabClient(args.name).on()
    return 0


def _off(args: argparse.Namespace) -> int:
    LabClient(args.name).off()
    return 0


def _console(args: argparse.Namespace) -> int:
    bench = LabClient(args.name)
    port = bench.ports.serial
    power = "" if bench.status().power else f"; the power is off: `evmperf virtual on {args.name}`"
    print(f"console of board {args.name}, Ctrl-] leaves{power}")
    terminal.run(port)
    print(f"\nleft the console of board {args.name}")
    return 0


def _status(args: argparse.Namespace) -> int:
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
    return 0


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
