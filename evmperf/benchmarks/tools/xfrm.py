"""iproute2's `ip -s xfrm state`: the traffic of one security association."""

import re

from evmperf.benchmarks.tools._checks import refuse, whole

_HEAD = re.compile(r"src (\S+) dst (\S+)")
_ESP = re.compile(r"\tproto esp spi (0x[0-9a-f]{8})\(\d+\) .*")
_CURRENT = re.compile(r"\t  (\d+)\(bytes\), (\d+)\(packets\)")


def command(name: str) -> str:
    """Shell text that keeps the counters of all states as `$OUT/NAME`, without their keys."""
    return f'ip -s xfrm state list nokeys > "$OUT/{name}"'


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
