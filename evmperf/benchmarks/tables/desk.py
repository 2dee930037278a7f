"""What a board shows as it is found, without anything installed and nothing overwritten: direct reads of its
disks, memory, processor, clocks and temperature under load by evmperf's own small program (see
`benchmarks.tools.gauge`), and the duration of its last boot by what the running system tells.
"""

import re
from collections.abc import Mapping, Sequence

from evmperf.benchmarks.benchmark import Benchmark, Profile
from evmperf.benchmarks.families.boot import readings_of_parts
from evmperf.benchmarks.step import Measure, Outputs, output
from evmperf.benchmarks.tools import gauge, systemd_analyze
from evmperf.benchmarks.tools._checks import refuse
from evmperf.boards.board import Board
from evmperf.model.results import VARIANT, Case, Direction, Metric, Reading
from evmperf.model.units import Unit

KINDS = ("emmc", "mmcsd", "ufs", "pcie", "sata", "usb", "disk")
"""Of disks: names of their drivers, `disk` for any other."""
_DISKS = [kind + number for kind in KINDS for number in ("", " 2", " 3")]
"""Rows: the disks of each kind, by their number."""

_HIGHER, _LOWER, _NONE = Direction.HIGHER, Direction.LOWER, Direction.NONE
_RATE = (Unit.MEGABYTE_PER_SECOND, _HIGHER)


def _gauge(
    name: str,
    title: str,
    rows: tuple[str, Sequence[str]],
    metrics: Mapping[str, tuple[Unit, Direction, str, float, float]],
    *,
    printed: str,
    words: str,
    optional: str = "",
    each: bool = False,
) -> Benchmark:
    """A table of the program's figures: the column METRIC of a row is the figure `printed`, in which both are
    filled in. One run with `words` serves all rows, unless `each` has its own.
    """
    columns = tuple(
        Metric(metric, unit, better, head, low, high, required=not metric.startswith(optional or "-"))
        for metric, (unit, better, head, low, high) in metrics.items()
    )

    def steps(board: Board, case: Case, _: object) -> list[Measure]:
        row = str(case.params[rows[0]])
        filled = words.format(device=_device(board, row), seconds=case.params["seconds"])

        def parse(outputs: Outputs) -> list[Reading]:
            text = output(outputs, gauge.TEXT_FILE)
            names = {column: printed.format(row=row, metric=column.name) for column in columns}
            return [
                Reading(column.name, gauge.figure(text, gauge.NAME, figure, str(column.unit)))
                for column, figure in names.items()
                if column.required or gauge.has(text, figure)
            ]

        command = gauge.command(board.options.desk.machine, filled)
        shared = "" if each else f"gauge {filled}"
        # Ten figures at most take a second each, and calibration as long again.
        return [Measure("measure", command, 300, 20, parse=parse, shared=shared)]

    def lacks(board: Board, case: Case) -> str:
        row = str(case.params[rows[0]])
        unknown = board.assumed  # until it shows its disks
        return f"the board has no disk {row}" if each and not unknown and not _device(board, row) else ""

    return Benchmark(
        name=name,
        driver="desk",
        title=title,
        section=("Desk", title),
        metrics=columns,
        profiles=Profile.crossed(dict([rows]), seconds=(3, 1)),
        steps=steps,
        options=(("desk", "machine"),),
        conditions=lambda board: {VARIANT: f"{gauge.NAME} for {board.options.desk.machine}"},
        lacks=lacks,
    )


def _device(board: Board, row: str) -> str:
    """The device of a row's disk, as /dev/mmcblk0; "" for one that the board does not have."""
    named = dict(disk.split("=", 1) for disk in board.options.desk.disks)
    device = named.get(row, "")
    return device if re.fullmatch(r"/dev/\w{1,32}", device) else ""


_STARTED = "started.txt"
_ASK = f'{systemd_analyze.LAST_BOOT} >"$OUT/{_STARTED}" || true'
_INIT = re.compile(r"(\d{1,6}\.\d{6})\] Run /(?:sbin/|bin/|etc/)?init as init process")


def _started(outputs: Outputs) -> list[Reading]:
    text = output(outputs, _STARTED)
    if own := _INIT.match(text):
        return [Reading("kernel", float(own[1]))]
    refuse(not text.strip(), "neither systemd nor the kernel's log tells the duration of this boot", text)
    return readings_of_parts(systemd_analyze.parts(text))


_BOOT = Benchmark(
    name="last_boot",
    driver="desk",
    title="Last boot, as the running system tells",
    section=("Desk", "Last boot"),
    metrics=(
        Metric("kernel", Unit.SECOND, _LOWER, "Kernel to init", 0.01, 3600),
        Metric("userland", Unit.SECOND, _LOWER, "Init to all services", 0.01, 3600, required=False),
        Metric("boot_time", Unit.SECOND, _LOWER, "Boot time", 0.01, 3600, required=False),
    ),
    profiles=Profile.crossed({"boot": ("running system",)}),
    steps=lambda board, case, plan: [Measure("ask", _ASK, 60, 1, parse=_started)],
    conditions=lambda board: {VARIANT: "what kernel and systemd say of the boot that is running"},
)

BENCHMARKS = (
    _BOOT,
    _gauge(
        "disk_reads",
        "Disk reads",
        ("disk", _DISKS),
        {
            "sequential": (*_RATE, "Sequential read, 1 MiB", 0.01, 100_000),
            "random": (Unit.PER_SECOND, _HIGHER, "Random reads of 4 KiB", 0.1, 1e8),
        },
        printed="{metric}",
        words="disk {device} {seconds}",
        each=True,
    ),
    _gauge(
        "memory_bandwidth",
        "Memory bandwidth",
        ("cpus", ("one", "all")),
        {name: (*_RATE, name.capitalize(), 1, 1e7) for name in ("read", "write", "copy", "triad")},
        printed="{row}_{metric}",
        words="memory {seconds}",
    ),
    _gauge(
        "memory_latency",
        "Memory latency",
        ("size", ("16k", "256k", "4m", "64m")),
        {"latency": (Unit.NANOSECOND, _LOWER, "Load", 0.1, 1e5)},
        printed="{metric}_{row}",
        words="memory {seconds}",
    ),
    _gauge(
        "processor",
        "Processor",
        ("cpus", ("one", "all")),
        {
            "clock": (Unit.MEGAHERTZ, _NONE, "Clock", 1, 20_000),
            "integer": (Unit.ITERATIONS_PER_SECOND, _HIGHER, "Integer mix", 0.1, 1e9),
            "floating": (Unit.KILOFLOPS, _HIGHER, "Matrix product", 1, 4e9),
        },
        printed="{row}_{metric}",
        words="cpu {seconds}",
    ),
    _gauge(
        "under_load",
        "Ten seconds of load on all CPUs",
        ("cpus", ("all",)),
        {
            "clock_first": (Unit.MEGAHERTZ, _NONE, "Clock, first second", 1, 20_000),
            "clock_last": (Unit.MEGAHERTZ, _NONE, "Clock, last second", 1, 20_000),
            "temperature_before": (Unit.CELSIUS, _NONE, "Temperature before", 1, 150),
            "temperature_peak": (Unit.CELSIUS, _LOWER, "Highest temperature", 1, 150),
            "temperature_after": (Unit.CELSIUS, _NONE, "Temperature 5 s after", 1, 150),
        },
        printed="{metric}",
        words="load 10",
        optional="temperature",
    ),
)
