"""The command `evmperf virtual`: boards that need no hardware."""

import argparse
import dataclasses
import json

from evmperf.commands.cli.arguments import command
from evmperf.commands.cli.terminal import note
from evmperf.model.errors import EvmperfError, LabError
from evmperf.virtual import envfile, image, recipe, release, server
from evmperf.virtual.board import BenchStatus, LabOptions, LabRecord
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
def _start(args: argparse.Namespace) -> None:
    bench = LabClient(args.name)
    variant = args.variant or (args.name if recipe.exists(args.name) else _NAME)

    def ready(record: BenchStatus | LabRecord, word: str = "started") -> None:
        ports = {"serial_port": record.serial_port, "power_port": record.power_port}
        if args.write_env:
            envfile.write(envfile.source(variant), args.write_env, **ports)
        said = f"serial {record.serial_port}, power {record.power_port}"
        print(f"board {bench.name} ({variant}) {word}: {said}", flush=True)

    if args.foreground:
        ports = envfile.usual_ports(bench.name, args.serial_port, args.power_port)
        more = tuple(args.qemu_option or ())
        server.run_foreground(LabOptions(bench.name, variant, *ports, args.fresh, more), ready)
        return
    asked = {name: getattr(args, name) for name in ("serial_port", "power_port", "fresh")}
    if bench.start(variant, **asked, qemu_options=args.qemu_option):
        ready(bench.record)
        return
    ready(bench.record, "is already running")
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
