"""Real outputs of benchmark programs, which are not part of the project: they may not be there.

A case names the file, what is made of its text first, the parser with its arguments, and the
number that a person read from it or what the refusal must say.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Callable
from pathlib import Path

from evmperf.benchmarks import tables
from selftests.support import seeds
from selftests.support.recordings import Recording

Shape = Callable[[str], str]


def folder() -> Path | None:
    """The nearest shared/real/tools beside the checkout or above; None if none."""
    place = seeds.place("real/tools")
    return place if place.is_dir() else None


def _whole(text: str) -> str:
    return text


def _line(start: str) -> Shape:
    """One line of many programs' results, as its program prints it."""

    def only(text: str) -> str:
        return "".join(line for line in text.splitlines(True) if line.startswith(start))

    return only


def _lines(first: str, last: str) -> Shape:
    """The lines from one to another."""

    def part(text: str) -> str:
        at = text.index(f"\n{first}") + 1
        end = text.index("\n", text.index(f"\n{last}", at - 1) + 1) + 1
        return text[at:end]

    return part


def _timed(seconds: str) -> Shape:
    """A U-Boot command under `time`."""
    return lambda text: f"{text}\ntime: {seconds} seconds"


def _piece(number: int) -> Shape:
    """One of several runs of dd, without the commands between."""

    def part(text: str) -> str:
        return re.findall(r"(?:\d+\+\d+ records \w+\n){2}\d+ bytes .*\n", text)[number]

    return part


_NBENCH = (
    "NUMERIC SORT, STRING SORT, BITFIELD, FP EMULATION, FOURIER, "
    "ASSIGNMENT, IDEA, HUFFMAN, NEURAL NET, LU DECOMPOSITION"
)


def _nbench(name: str, *rates: float) -> list[tuple]:
    rows = zip(_NBENCH.split(", "), rates, strict=True)
    return [(name, _whole, "programs:nbench.0", (kernel,), rate) for kernel, rate in rows]


def _stream(name: str, *rates: float) -> list[tuple]:
    rows = zip(("Copy", "Scale", "Add", "Triad"), rates, strict=True)
    return [(name, _whole, "programs:stream", (kernel,), rate) for kernel, rate in rows]


def _numbered(name: str, *values: float) -> list[tuple]:
    """The first outputs of a program of one figure."""
    return [(f"{name}-{n}", _whole, f"programs:{name}", (), value) for n, value in enumerate(values, 1)]


_DD_BYTES = 524288000

_CASES: list[tuple] = [
    *_numbered("dhrystone", 3030303.0, 1388888.9, 3703703.8, 10000000.0, 6666666.5),
    *_numbered("whetstone", 485.4, 82.6, 1923.1, 5555.6, 4166.7),
    # Its clock is finer than the seconds that it prints.
    ("whetstone-6", _whole, "programs:whetstone", (), "not that of its loops and whole seconds"),
    ("linpack-1", _whole, "programs:linpack", ("double",), 8696.0),
    ("linpack-1", _whole, "programs:linpack", ("single",), "double precision, not single"),
    ("linpack-2", _whole, "programs:linpack", ("single",), 33834.0),
    ("linpack-2", _whole, "programs:linpack", ("double",), "single precision, not double"),
    ("linpack-3", _whole, "programs:linpack", ("double",), "rolled"),
    ("linpack-4", _whole, "programs:linpack", ("double",), "measured nothing: -2147483648"),
    *_nbench("nbench-1", 395.2, 40.032, 1.3728e8, 67.8, 1324.1, 5.2366, 840.3, 514.44, 1.42, 55.316),
    *_nbench("nbench-2", 386.53, 12.447, 1.4006e8, 88.258, 1591.8, 6.4511, 958.43, 619.13, 1.6131, 59.127),
    *_stream("stream-1", 562.7, 429.3, 516.2, 482.7),
    *_stream("stream-2", 770.6, 212.3, 311.4, 296.6),
    *_stream("stream-3", 935.5, 1279.6, 939.0, 922.4),
    *_stream("stream-4", 3403.4, 3265.5, 2918.9, 2882.6),
    *_stream("stream-5", 2427.1, 2404.0, 2662.6, 2645.0),
    *_stream("stream-7", 25956.9, 19288.6, 27675.3, 28701.1),
    ("nbench-4", _whole, "programs:nbench.0", ("IDEA",), "ten rows"),
    ("nbench-5", _whole, "programs:nbench.0", ("NUMERIC SORT",), "ten rows"),
    ("stream-6", _whole, "programs:stream", ("Copy",), "four rows"),
    ("coremark_pro-2", _whole, "coremark_pro:rate", ("core", "SingleCore"), "other columns"),
    ("coremark_pro-3", _whole, "coremark_pro:rate", ("cjpeg-rose7-preset", "SingleCore"), 156.25),
    ("coremark_pro-3", _whole, "coremark_pro:rate", ("CoreMark-PRO", "SingleCore"), 5439.59),
    ("coremark_pro-3", _whole, "coremark_pro:rate", ("CoreMark-PRO", "MultiCore"), 19183.84),
    ("coremark_pro-4", _whole, "coremark_pro:rate", ("core", "SingleCore"), "Errors encountered"),
    ("coremark_pro-5", _whole, "coremark_pro:rate", ("core", "SingleCore"), "ten rows"),
    (
        "coremark_pro-5+coremark_pro-3",
        _whole,
        "coremark_pro:logged",
        ("core", "SingleCore"),
        "lu-sml-20x2_50 failed",
    ),
    ("coremark-1", _whole, "coremark_pro:rate", ("core", "SingleCore"), "ten rows"),
    ("mith-1", _whole, "mith:workloads_per_second", ("linear_alg-mid-100x100-sp",), 16.301),
    ("mith-3", _whole, "mith:workloads_per_second", ("lu-sml-20x2_50",), "verified .* -v0"),
    ("glmark2-1", _whole, "glmark2:drawing.score", (), 500.0),
    ("glmark2-2", _whole, "glmark2:drawing.score", (), 566.0),
    ("glmark2-3", _whole, "glmark2:drawing.score", (), 1769.0),
    ("glmark2-4", _whole, "glmark2:drawing.score", (), 87.0),
    ("glmark2-4", _whole, "glmark2:drawing.unsupported", (), ["terrain"]),
    ("glmark2-5", _whole, "glmark2:drawing.score", (), "unexpected: 'Segmentation fault'"),
    ("glmark2-6", _whole, "glmark2:drawing.score", (), 92.0),
    ("glmark2-7", _whole, "glmark2:drawing.score", (), "0 scores"),
    ("openssl-1", _whole, "openssl:throughput", (16, 30), "unexpected"),
    ("openssl-2", _whole, "openssl:throughput", (16, 3), "not whole|unexpected"),
    ("netperf-1", _whole, "netperf:outcome", ("UDP_STREAM", 300), "was asked for DIRECTION"),
    ("netperf-2", _whole, "netperf:outcome", ("UDP_STREAM", 60), "was asked for DIRECTION"),
    ("netperf-3", _whole, "netperf:outcome", ("TCP_MAERTS", 10), "was asked for DIRECTION"),
    ("netperf-4", _whole, "netperf:outcome", ("TCP_STREAM", 10), "was asked for DIRECTION"),
    ("fio-1", _whole, "fio:throughput", ("read",), 120135.948816),
    ("fio-2", _whole, "fio:throughput", ("read",), 123491.674582),
    ("fio-3", _whole, "fio:throughput", ("read",), 3453.133943),
    ("fio-4", _whole, "fio:throughput", ("write",), 13.578391),
    ("fio-5", _whole, "fio:throughput", ("write",), "exactly one job"),
    ("mpstat-1", _whole, "mpstat:load", (), "not the JSON"),
    ("mpstat-2", _whole, "mpstat:load", (), "not the JSON"),
    ("mpstat-3", _whole, "mpstat:load", (), "not the JSON"),
    ("mpstat-4", _whole, "mpstat:load", (), "2 intervals"),
    ("mpstat-5", _whole, "mpstat:load", (), "0 intervals"),
    ("mpstat-6", _whole, "mpstat:load", (), "2 intervals"),
    ("mpstat-7", _whole, "mpstat:load", (), 4.33),
    ("iperf3-1", _whole, "iperf3:bidirectional", (10,), "sum_received_bidir_reverse"),
    ("cyclictest-1", _whole, "cyclictest:cpus", (), [6, 7, 8, 9, 10, 11]),
    ("cyclictest-1", _whole, "cyclictest:latencies", ("min",), [2.0] * 6),
    ("cyclictest-1", _whole, "cyclictest:latencies", ("avg",), [2.56, 2.46, 2.58, 2.69, 2.59, 2.57]),
    ("cyclictest-1", _whole, "cyclictest:latencies", ("max",), [20.0, 20.0, 340.0, 279.0, 128.0, 22.0]),
    ("lmbench-1", _whole, "lmbench:value_of_size", (268.44,), 13805.57),
    ("lmbench-2", _whole, "lmbench:value_of_size", (268.44,), "other output than one size"),
    ("lmbench-3", _whole, "lmbench:labelled", ("Simple syscall", "microseconds"), "other output"),
    ("lmbench-3", _line("Simple syscall"), "lmbench:labelled", ("Simple syscall", "microseconds"), 0.2345),
    ("lmbench-3", _line("Pipe latency"), "lmbench:labelled", ("Pipe latency", "microseconds"), 25.5437),
    ("lmbench-3", _lines("0k\t", "10k\t"), "lmbench:files", (0,), 18774.0),
    ("lmbench-3", _lines('"size=0k', "2 "), "lmbench:context_switch", (0, 2), 11.57),
    ("dd-1", _whole, "dd:throughput", (_DD_BYTES, 1), _DD_BYTES / 43.8911),
    ("dd-2", _whole, "dd:throughput", (_DD_BYTES, 1), _DD_BYTES / 14.9688),
    ("dd-3", _whole, "dd:throughput", (_DD_BYTES, 1), "unexpected: 'sync; dd"),
    ("dd-3", _piece(0), "dd:throughput", (_DD_BYTES, 1), _DD_BYTES / 20.0724),
    ("dd-3", _piece(1), "dd:throughput", (_DD_BYTES, 1), _DD_BYTES / 23.4632),
    ("uboot_sf-1", _whole, "uboot:sf_rate", ("write", 0, 1 << 24, 1), "did not write as asked"),
    ("uboot_sf-2", _whole, "uboot:sf_rate", ("write", 0, 1 << 24, 1), "says nothing"),
    ("uboot_sf-3", _whole, "uboot:sf_rate", ("read", 0, 1 << 23, 1), "did not confirm"),
    ("uboot_time-1", _whole, "uboot:disk_rate", ("write", 6912, "mmc"), "0 time lines"),
    ("uboot_time-1", _timed("0.250"), "uboot:disk_rate", ("write", 6912, "mmc"), 13824.0),
    ("uboot_time-2", _whole, "uboot:file_rate", ("read", 2214800), "0 time lines"),
    ("uboot_time-2", _timed("0.028"), "uboot:file_rate", ("read", 2214800), 2214800 / 1024 / 0.028),
    ("uboot_time-2", _timed("0.008"), "uboot:file_rate", ("read", 2214800), "shorter than"),
    ("uboot_time-3", _timed("1.000"), "uboot:disk_rate", ("write", 16384, "mmc"), "0 MMC lines"),
]


def _datagrams(offered: float, received: float, sent: int, lost: int) -> dict:
    return {"offered": offered, "received": received, "sent": sent, "lost": lost}


_MORE: list[tuple] = [
    ("cyclictest-1", "cyclictest:latencies", ("max",), [7896.0, 4357.0]),
    ("cyclictest-1", "cyclictest:latencies", ("max", 3), [7896.0, 4357.0]),
    ("cyclictest-2", "cyclictest:latencies", ("max",), "ended after 1.4 s instead of 30 s"),
    ("cyclictest-3", "cyclictest:latencies", ("max",), "one thread on each CPU"),
    ("fio-1", "fio:throughput", ("write",), 8.87698),
    ("fio-2", "fio:throughput", ("write",), "did read"),
    ("fio-3", "fio:throughput", ("write",), "did read"),
    ("fio-4", "fio:throughput", ("write",), 192.59943),
    ("fio-5", "fio:throughput", ("read",), "did write"),
    ("fio-6", "fio:throughput", ("read",), "error 42"),
    ("fio-8", "fio:throughput", ("read",), "by a signal"),
    ("fio-9", "fio:throughput", ("write",), "error 28"),
    ("fio-10", "fio:throughput", ("write", 3), 1541.689646),
    ("iperf3-2", "iperf3:datagrams", (11, 1448), _datagrams(32.30562576505577, 32.034981770479405, 30677, 1)),
    ("iperf3-3", "iperf3:datagrams", (10, 1448), _datagrams(1.049500324796882, 1.049500324796882, 906, 0)),
    ("iperf3-5", "iperf3:bidirectional", (10,), 1836.04977863501),
    ("iperf3-6", "iperf3:bidirectional", (10,), "Connection refused"),
    ("iperf3-7", "iperf3:bidirectional", (2,), 2509.820280719975),
    ("iperf3-8", "iperf3:datagrams", (2, 1472), _datagrams(19.994678258104486, 19.993908529957896, 3396, 0)),
    ("iperf3-9", "iperf3:datagrams", (2, 1472), _datagrams(19.999726024794757, 20.0004059770623, 3397, 0)),
    ("iperf3-10", "iperf3:bidirectional", (6,), "client has terminated"),
    ("iperf3-11", "iperf3:bidirectional", (6,), "server has terminated"),
    ("netperf-1", "netperf:outcome", ("TCP_STREAM", 3), "DIRECTION"),
    ("netperf-2", "netperf:outcome", ("TCP_STREAM", 3), "DIRECTION"),
    ("dd-2", "dd:throughput", (536870912, 1), 551190850.2905484),
    ("dd-8", "dd:throughput", (2097152000, 1), 16190848.240135264),
    ("dd-11", "dd:throughput", (1073741824, 1), 3200985639.7995477),
    ("dd-7", "dd:throughput", (536870912, 1), 39005159.2185468),
    ("dd-4", "dd:throughput", (536870912, 1), "unexpected"),
    ("dd-3", "dd:throughput", (1, 1), "unexpected"),
    ("dd-10", "dd:throughput", (1, 1), "unexpected"),
    ("dd-6", "dd:throughput", (1, 1), "unexpected"),
    ("openssl-1", "openssl:throughput", (16, 1), 195461.216),
    ("openssl-2", "openssl:throughput", (16, 3), "unexpected|not whole"),
    ("openssl-3", "openssl:throughput", (16, 3), "unexpected|not whole"),
    ("openssl-4", "openssl:throughput", (16, 3), "unexpected|not whole"),
    ("mpstat-1", "mpstat:load", (), 100.0),
    ("mpstat-3", "mpstat:load", (), 17.0),
    ("mpstat-4", "mpstat:load", (), 43.06),
    ("glmark2-1", "glmark2:drawing.score", (), 1450.0),
    ("glmark2-2", "glmark2:drawing.score", ("-b build:use-vbo=false -b build:use-vbo=true",), 769.0),
    ("glmark2-4", "glmark2:drawing.score", (), "0 scores"),
    ("glmark2-5", "glmark2:drawing.score", (), "draws on the CPU"),
    ("glmark2-5", "glmark2:drawing.score", ("", True), 36.0),
    ("glmark2-7", "glmark2:drawing.score", (), "unexpected"),
    ("glmark2-8", "glmark2:drawing.score", (), 80.0),
    ("glmark2-9", "glmark2:drawing.score", (), 55.0),
    ("stream-1", "programs:stream", ("Copy",), 18514.5),
    ("stream-1", "programs:stream", ("Scale",), 18333.8),
    ("stream-1", "programs:stream", ("Add",), 23043.7),
    ("stream-1", "programs:stream", ("Triad",), 23314.0),
    ("stream-2", "programs:stream", ("Copy",), "four rows"),
    ("stream-3", "programs:stream", ("Copy",), "four rows"),
    ("stream-4", "programs:stream", ("Copy",), "four rows"),
    ("dhrystone-1", "programs:dhrystone", (), 6090134.0),
    ("dhrystone-3", "programs:dhrystone", (), "no rate"),
    ("whetstone-1", "programs:whetstone", (), 6666.7),
    ("whetstone-3", "programs:whetstone", (), "not that of its loops and whole seconds"),
    ("whetstone-4", "programs:whetstone", (), "not that of its loops and whole seconds"),
    ("whetstone-6", "programs:whetstone", (), 94.3),
    ("whetstone-7", "programs:whetstone", (), "no rate"),
    ("whetstone-9", "programs:whetstone", (), "no rate"),
    ("coremark_pro-1", "coremark_pro:rate", ("core", "MultiCore"), 4.87),
    ("coremark_pro-1", "coremark_pro:rate", ("core", "SingleCore"), 1.3),
    ("coremark_pro-1", "coremark_pro:rate", ("CoreMark-PRO", "MultiCore"), 19183.84),
    ("coremark_pro-1", "coremark_pro:rate", ("CoreMark-PRO", "SingleCore"), 5439.59),
    ("nbench-1", "programs:nbench.0", ("IDEA",), 7068.0),
    ("nbench-3", "programs:nbench.0", ("IDEA",), 3253.0),
    ("nbench-5", "programs:nbench.0", ("IDEA",), "ten rows"),
    ("uboot_time-1", "uboot:file_rate", ("read", 7937825), "0 lines of bytes"),
    ("uboot_time-3", "uboot:disk_rate", ("read", 12, "mmc"), "MMC lines|0 MMC"),
    ("uboot_time-4", "uboot:file_rate", ("read", 7937825), 221479.49218749997),
    ("uboot_time-6", "uboot:file_rate", ("write", 110578), 40.67281661958569),
    ("uboot_time-7", "uboot:disk_rate", ("read", 16384, "mmc"), "ended as write"),
    ("uboot_sf-1", "uboot:sf_rate", ("write", 0, 262144, 1), "Erased 524288"),
    ("yavta-1", "yavta:frame_rate", (4080, 3072, "nv12", 10), 27.20186),
    ("yavta-2", "yavta:frame_rate", (4080, 3072, "nv12", 10), 27.20186),
    ("yavta-4", "yavta:frame_rate", (1920, 1080, "nv12", 1), "captures no format"),
    ("lmbench-1", "lmbench:memory_latency", ("1.00000", "4096.00000"), 6.022),
    ("lmbench-2", "lmbench:memory_latency", ("1.00000", "4096.00000"), "other output"),
    ("lmbench-9", "lmbench:value_of_size", (1.048576,), 16.0),
    ("lmbench-10", "lmbench:labelled", ("Select on 100 tcp fd's", "microseconds"), 3.8531),
    (
        "lmbench-4",
        "lmbench:labelled",
        ("Signal handler installation", "microseconds"),
        "other output than 1 results",
    ),
    ("lmbench-3", "lmbench:labelled", ("Simple syscall", "microseconds"), "other output"),
    ("lmbench-6", "lmbench:files", (0,), 469.0),
    ("lmbench-7", "lmbench:value_of_size", (1.048576,), "other output"),
    ("pm_phases-1", "suspend:latencies", (), [723.645, 328.448]),
]
"""Cases of tools-2: all texts as they are."""
_CASES += [(f"../tools-2/{name}", _whole, *rest) for name, *rest in _MORE]
_CUT = {
    "sda-blame-webc": ("rsyslog.service", 0.064),
    "bootstage-coral17": ("id=64", 0.340684, "main_loop", 0.027636, "start_kernel", 4.101986),
}
"""What truth.tsv has no room for, of lists of names and seconds."""


def _third(place: Path) -> list[tuple]:
    """Cases of tools-3: all texts as they are, with the parser and the truth that its table names."""
    if not (table := place / "../tools-3/truth.tsv").is_file():
        return []
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [
        (
            f"../tools-3/{row['name']}",
            _whole,
            row["parser"],
            ast.literal_eval(row["arguments"]),
            _truth(row["name"], row["truth"]),
        )
        for row in rows
    ]


def _truth(name: str, text: str) -> object:
    if not text.startswith("["):
        return "." if text == "refuse" else ast.literal_eval(text)
    pairs = [(unit, float(seconds)) for unit, seconds in re.findall(r"\('([^']+)', ([\d.]+)\)", text)]
    rest = _CUT.get(name, ())
    return [*pairs, *zip(rest[::2], rest[1::2], strict=True)]


_OTHER = {
    "BOOTSTAGE": "evmperf.boards.console.tree:bootstages",
    "fio:throughput": "evmperf.benchmarks.families.disk:fio_throughput",
}
"""Readers of outputs that are no parser of their tool's module, by their word in truth.tsv."""
_TABLES = {
    "coremark_pro": "eembc",
    "cyclictest": "cyclictest_stress",
    "mith": "eembc",
    "suspend": "lpm_resume_latency",
    "yavta": "sensor_capture",
}
"""Modules of tools of one table, where these are not named like the tool."""
NOT_USED = {
    "iperf3-2": "looks written by hand",
    "iperf3-3": "looks written by hand",
    "alsa-1": "a fragment; test_recordings composes a whole of it",
}
"""Files without a case, and why."""


def cases() -> list[Recording]:
    """All cases over the real texts; none where they are not."""
    place = folder()
    return [_case(place, row) for row in _CASES + _third(place)] if place else []


def _full(parser: str) -> str:
    """The name of a parser with its package: of a tool of one table, that of tables."""
    tool, _, function = parser.partition(":")
    module = _TABLES.get(tool, tool)
    is_table = (Path(tables.__file__).parent / f"{module}.py").is_file()
    return f"evmperf.benchmarks.{'tables' if is_table else 'tools'}.{module}:{function}"


def _case(place: Path, row: tuple) -> Recording:
    names, shape, parser, arguments, wanted = row
    texts = tuple(shape((place / f"{name}.txt").read_text()) for name in names.split("+"))
    refused, parser = isinstance(wanted, str), _OTHER.get(parser) or _full(parser)
    return Recording(
        name=f"{names} {parser.partition(':')[2]} {' '.join(map(str, arguments))}".strip(),
        parser=parser,
        texts=texts,
        arguments=arguments,
        expected=None if refused else wanted,
        refused=wanted if refused else "",
        edited=False,
    )


def files_of(case: Recording) -> set[str]:
    """Which real files a case is of."""
    return set(case.name.partition(" ")[0].split("+"))
