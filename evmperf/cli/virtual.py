"""The command `evmperf virtual`: boards that need no hardware."""

import argparse
import dataclasses
import json
from pathlib import Path

from evmperf.cli.arguments import command
from evmperf.cli.terminal import note
from evmperf.model.errors import EvmperfError, LabError
from evmperf.virtual import envfile, image, recipe, release, server
from evmperf.virtual.board import BenchStatus, LabOptions
from evmperf.virtual.client import LabClient, all_benches, terminal

_NAME = "virtual"


@command("virtual build")
def _build(args: argparse.Namespace) -> None:
    for variant in args.variant:
        built = image.build(variant, force=args.force, progress=note)
        print(f"image {built.variant} {built.hash} is in {built.directory}")


@command("virtual release")
def _release(args: argparse.Namespace) -> None:
    release.build(args.variant, args.number, args.file, note)
    print(f"{release.name(args.variant, args.number)} is in {args.file}")


@command("virtual start")
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


@command("virtual stop")
def _stop(args: argparse.Namespace) -> None:
    for bench in all_benches() if args.all else [LabClient(args.name)]:
        stopped = bench.stop()
        if stopped or not args.all:
            print(f"board {bench.name} {'stopped' if stopped else 'was not running'}")


@command("virtual on")
def _on(args: argparse.Namespace) -> None:
    LabClient(args.name).on()


@command("virtual off")
def _off(args: argparse.Namespace) -> None:
    LabClient(args.name).off()


@command("virtual console")
def _console(args: argparse.Namespace) -> None:
    bench = LabClient(args.name)
    port = bench.record.serial_port
    power = "" if bench.status().power else f"; the power is off: `evmperf virtual on {args.name}`"
    print(f"console of board {args.name}, Ctrl-] leaves{power}")
    terminal(port)
    print(f"\nleft the console of board {args.name}")


@command("virtual status")
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
