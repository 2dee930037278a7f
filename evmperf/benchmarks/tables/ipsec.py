"""TCP through an IPsec tunnel (ESP) with keys set directly (`ip xfrm`), computed by the CPU or an
accelerator; the board's own counters must show that the tunnel carried it.
"""

import functools
import re
import struct
from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.families import network
from evmperf.benchmarks.families.network import NetworkServer
from evmperf.benchmarks.step import Measure, Outputs, Plan, Prepare, Step, Where, output, readings
from evmperf.benchmarks.tools import netperf
from evmperf.benchmarks.tools._checks import refuse, whole
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case, Reading
from evmperf.model.shelltext import ShellTexts

_SHELL = ShellTexts(__file__)
_FILE = "netperf.txt"
_BEFORE, _AFTER = "xfrm.before", "xfrm.after"
_AUTHENTICATION = "hmac(sha1)"

_CIPHERS = {
    "3des": ("cbc(des3_ede)", 24),
    "aes128": ("cbc(aes)", 16),
    "aes192": ("cbc(aes)", 24),
    "aes256": ("cbc(aes)", 32),
}
"""The kernel's name and the key's bytes."""

_HEAD = re.compile(r"src (\S+) dst (\S+)")
_ESP = re.compile(r"\tproto esp spi (0x[0-9a-f]{8})\(\d+\) .*")
_CURRENT = re.compile(r"\t  (\d+)\(bytes\), (\d+)\(packets\)")
"""What iproute2 (`ip -s xfrm state`) says of a state."""


def _tunnel(where: Where, ours: str, theirs: str, spis: tuple[int, int], keys: str) -> Prepare:
    """Set up one side; `spis` are the numbers of its outgoing and its incoming tunnel."""
    ways = ((ours, theirs, spis[0], "out"), (theirs, ours, spis[1], "in"))
    commands = (
        _SHELL("way", where=where, keys=keys, source=source, target=target, spi=f"{spi:#x}", direction=way)
        for source, target, spi, way in ways
    )
    return network.changing(f"tunnel on {where}", "; ".join(commands), where=where)


def _steps(board: Board, case: Case, plan: Plan, *, accelerated: bool) -> Sequence[Step]:
    cable, server = board.options.cable("ipsec"), NetworkServer("netserver", Where.TESTER, plan.port)
    ours, theirs = network.board_ip(cable), cable.tester_address
    cipher, key_bytes = _CIPHERS[str(case.params["algorithm"])]
    seconds = int(case.params["seconds"])
    # Of 31 bits, above those that are reserved (RFC 4303, section 2.1).
    out, back = (0x1000 + (number >> 1) for number in struct.unpack(">II", plan.secret[:8]))
    back += back == out
    authentication, encryption = plan.secret[8:28], plan.secret[28 : 28 + key_bytes]
    keys = f"auth-trunc '{_AUTHENTICATION}' 0x{authentication.hex()} 96 enc '{cipher}' 0x{encryption.hex()}"
    accelerator, module = board.options.ipsec.accelerator, board.options.ipsec.accelerator_module
    driver = _SHELL("loaded" if accelerated else "unloaded", module=module)
    used = "accelerated" if accelerated else "not_accelerated"
    computed_by = _SHELL(used, accelerator=accelerator, cipher=cipher)
    test = netperf.command("TCP_STREAM", theirs, server.port, seconds, cpu="-c", name=_FILE)
    # The counters of all states, without their keys.
    looks = (f'ip -s xfrm state list nokeys > "$OUT/{name}"' for name in (_BEFORE, _AFTER))
    timed = f" && {test} && ".join(looks)

    def parse(outputs: Outputs) -> list[Reading]:
        result = netperf.outcome(output(outputs, _FILE), "TCP_STREAM", seconds)
        before, after = output(outputs, _BEFORE), output(outputs, _AFTER)
        (sent, packets), (received, _) = (
            [b - a for a, b in zip(carried(before, spi), carried(after, spi), strict=True)]
            for spi in (out, back)
        )
        if sent < result.sent or received <= 0:
            reason = f"netperf sent {result.sent} bytes, but ESP carried {sent} there and {received} back"
            raise RefusedOutput(reason, before + after)
        kpps = packets / result.elapsed_s / 1e3
        return readings(throughput=result.throughput, kpps=kpps, cpu_load=result.local_cpu_load)

    return [
        network.prepare(board, "ipsec"),
        server.start(),
        *([network.changing("accelerator's driver", driver)] if module else []),
        _tunnel(Where.TESTER, theirs, ours, (back, out), keys),
        _tunnel(Where.BOARD, ours, theirs, (out, back), keys),
        *([Prepare("accelerator", computed_by, 30)] if accelerator else []),
        Measure("measure", timed, seconds * 2 + 120, seconds + 2, parse=parse),
        network.put_back(),
        network.put_back(Where.TESTER),
        server.stop(),
    ]


def carried(text: str, spi: int) -> tuple[int, int]:
    """Bytes and packets of the only ESP state with this SPI; raises RefusedOutput."""
    counts: list[tuple[int, int]] = []
    ours = current = False
    lines = text.splitlines()
    for line in lines:
        if _HEAD.fullmatch(line):
            ours = current = False
        elif match := _ESP.fullmatch(line):
            ours = int(match.group(1), 16) == spi
        elif ours and line == "\tlifetime current:":
            current = True
        elif current:
            counters = whole(_CURRENT, line, f"the state's counters are garbled: {line[:80]!r}", text)
            counts.append((int(counters[1]), int(counters[2])))
            current = False
    one = len(counts) == 1 and text.endswith("\n")
    refuse(not one, f"{len(counts)} ESP states have the SPI {spi:#x} instead of one", text)
    return counts[0]


def _benchmark(name: str, *, accelerated: bool) -> Benchmark:
    """A table of ciphers; with `accelerated`, the board's accelerator must be at work."""

    def lacks(board: Board, case: Case) -> str:
        algorithms = board.options.ipsec.accelerator_algorithms
        if not accelerated or not algorithms or case.label in algorithms:
            return ""
        return f"{board.file_name} says that the accelerator does not compute {case.label}"

    def conditions(board: Board) -> dict[str, str]:
        accelerator = board.text("ipsec", "accelerator")
        return {
            **network.conditions(board, "ipsec"),
            "esp": f"tunnel mode, {_AUTHENTICATION}",
            **({"accelerator": accelerator} if accelerated else {}),
        }

    return Benchmark(
        **declared(__file__)[name],
        steps=functools.partial(_steps, accelerated=accelerated),
        conditions=conditions,
        lacks=lacks,
    )


BENCHMARKS = (_benchmark("ipsec_hw", accelerated=True), _benchmark("ipsec_sw", accelerated=False))
