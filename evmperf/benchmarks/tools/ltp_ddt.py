"""TI's own programs of ltp-ddt (on TI's images in /opt/ltp/testcases/bin): command lines and parsers of
`filesystem_tests` and `alsa_perf_tests`. Each form is taken whole: it has what the program was asked for, and
numbers that vouch for each other, as it computes them with C's float.
"""

import re
import struct

from evmperf.benchmarks.tools._checks import above_zero, agree, over, refuse, span, whole
from evmperf.model.errors import RefusedOutput
from evmperf.model.units import MEGABYTE

FILES, AUDIO = "filesystem_tests", "alsa_perf_tests"
"""The programs."""

_NUMBER = r"(\d{1,15}\.\d{6})"
_LOAD = r"(\d{1,3}\.\d\d)%"
_TRANSFERRED = r"""\s*\|TEST START\|filesystemTests\|
\*+ filesystem Testcase  parameters  \*+ ?
\|TRACE LOG\|The file name\|[^|\n]+\|
\|TRACE LOG\|The application buffer size in bytes\|@buffer\|
\|TRACE LOG\|file size in MB\|@mib\.00\|
\|TRACE LOG\|Iomode\|@side\|
(?:\|TRACE LOG\|srcfile size in MB\|@source\.00\|
)?\*+ End of Test params \*+ ?
(?:\|TRACE LOG\|mmap srcfile \|
)?\|TRACE LOG\|file@side \| Durartion in usecs \| (\d{1,15})\|
\|TRACE LOG\|file@side \| Mega Bytes/Sec \| @number\|
\|TRACE LOG\|file@side \| percentage cpu load \| @load\|
\|TRACE LOG\|\|PERFDATA\|bsize:@buffer\|iomode:@side\|throughput:(\d+\.\d\d)MB/S\|cpuload:@load\|\|
\|TEST RESULT\|PASS\|filesystemTests\|
\|TEST END\|filesystemTests\|
"""
_STREAMED = r"""\s*\|TEST START\|alsa_perf_tests\|
\*+ ALSA Testcase  parameters  \*+ ?
\|TRACE LOG\|@direction Test is going to start with following values \|
\|TRACE LOG\|Card name\s+\|[^|\n]+\|
\|TRACE LOG\|Device Number\s+\|0\|
\|TRACE LOG\|Access Type\s+\|RW_INTERLEAVED\|
\|TRACE LOG\|Period Size\s+\|@period\|
\|TRACE LOG\|Buffer Size\s+\|1024\|
\|TRACE LOG\|Sampling Rate\s+\|@rate\|
\|TRACE LOG\|Channels\s+\|2\|
\|TRACE LOG\|format\s+\|S16_LE\|
\|TRACE LOG\|Total Size\s+\|@size\|
\*+ End of Test params \*+ ?
\|TRACE LOG\|(?i:@side): Duration in Sec \| @number\|
\|TRACE LOG\|(?i:@side): No\. of bits/Sec \| (\d{1,12})\|
\|TRACE LOG\|(?i:@side): percentage cpu load \| @load\|
\|TEST RESULT\|PASS\|alsa_perf_tests\|
\|TEST END\|alsa_perf_tests\|
"""
_XRUN = re.compile(r"\b(?:Over|Under)run Error")
_CUT = 120


def transfer(side: str, size: int, *, file: str, buffer: str, source: str = "", source_bytes: int = 0) -> str:
    """Shell text that moves `size` bytes, whole MiB, in pieces of `buffer` bytes: `write` from a mapped file
    of `source_bytes` bytes, which divides `size`, or `read`.
    """
    given = f"-src_file {source} -srcfile_size {source_bytes >> 20} " if side == "write" else ""
    return f"{FILES} -{side} {given}-file {file} -buffer_size {buffer} -file_size {size >> 20} -performance"


def transferred(text: str, side: str, size: int, buffer: int, source_bytes: int) -> tuple[float, float]:
    """Throughput in MB/s (10^6 bytes) and CPU load in percent of what `transfer` printed.

    Raises RefusedOutput for another or an incomplete form, a failed test (which prints a rate nevertheless),
    and a rate that is not that of bytes and microseconds to its last digit.
    """
    asked = {"side": side, "buffer": buffer, "mib": size >> 20, "source": source_bytes >> 20}
    microseconds, rate, load, rate_again, load_again = _printed(_TRANSFERRED, text, FILES, **asked)
    above_zero(microseconds, FILES, text)
    computed = _float(_float(size) / _float(int(microseconds)))
    same = (f"{computed:.6f}", f"{computed:.2f}", load) == (rate, rate_again, load_again)
    refuse(not same, f"{FILES}' rates and loads contradict {size} bytes in {microseconds} us", text)
    return size / int(microseconds) * 1e6 / MEGABYTE, _percent(load, text)


def stream(side: str, size: int, *, device: str, rate: int, period: int) -> str:
    """Shell text that moves `size` bytes of 16-bit stereo at `rate` Hz: `record` or `playback`."""
    return (
        f"{AUDIO} -device={device} -{side} 0 -rate {rate} -periodsize {period} -totalsize {size} -performance"
    )


def streamed(text: str, side: str, size: int, rate: int, period: int) -> tuple[float, float]:
    """Throughput in bit/s and CPU load in percent of what `stream` printed; raises RefusedOutput as
    `transferred`, and for lost data, which the program counts as moved.
    """
    refuse(_XRUN.search(text), f"data was lost: {len(_XRUN.findall(text))} XRUNs", text)
    direction, verb = {"record": ("CAPTURE", "read"), "playback": ("PLAYBACK", "write")}[side]
    asked = {"direction": direction, "side": verb, "size": size, "rate": rate, "period": period}
    seconds, bits, load = _printed(_STREAMED, text, AUDIO, **asked)
    above_zero(seconds, AUDIO, text)
    above_zero(bits, AUDIO, text)
    same = agree(over(8.0 * size, span(seconds)), span(bits))
    refuse(not same, f"{AUDIO}' {bits} bit/s are not {size} bytes in {seconds} s", text)
    return float(bits), _percent(load, text)


def _printed(form: str, text: str, program: str, **asked: object) -> tuple[str, ...]:
    """The numbers in a form; raises RefusedOutput with the first line that is not in it."""
    filled = form.replace("@number", _NUMBER).replace("@load", _LOAD)
    for name in sorted(asked, key=len, reverse=True):
        filled = filled.replace(f"@{name}", re.escape(str(asked[name])))
    errors = [line for line in text.splitlines() if line.startswith(("|ERROR|", "|TEST RESULT|FAIL"))]
    refuse(errors, f"{program} failed: {errors[0][:_CUT] if errors else ''}", text)
    if re.search(r"\|PERFDATA\|.*\n(?:.*\n)*.*\|PERFDATA\|", text):
        raise RefusedOutput(f"{program} printed its result twice", text)
    last = text.rstrip().rpartition("\n")[2]
    reason = f"{program} printed another form than that of the test asked for; its last line: {last[:_CUT]!r}"
    return whole(re.compile(filled), text, reason).groups()


def _percent(load: str, text: str) -> float:
    refuse(float(load) > 100, f"a CPU load of {load} % is impossible", text)
    return float(load)


def _float(number: float) -> float:
    """The nearest of C's floats."""
    return float(struct.unpack("f", struct.pack("f", number))[0])
