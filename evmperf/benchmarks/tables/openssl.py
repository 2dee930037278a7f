"""OpenSSL's ciphers and digests: throughput, and CPU load. One run of `openssl speed -mr` for an algorithm
serves both tables. The comparison has each algorithm in three ways: by the kernel, which has the
accelerators, and by the processor with and without its instructions for it.
"""

import math
import re
from typing import Any

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.step import Measure, Outputs, output
from evmperf.benchmarks.tools._checks import read_twice, refuse, twice, whole
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case, Reading
from evmperf.model.shelltext import ShellTexts

_NAMES = {"sha2-256": "sha256", "sha2-512": "sha512"}
"""openssl's names by the guides', where they differ."""

_WAYS = ("arm", "arm_ce", "accelerator")
_ABOUT = {
    "": "openssl engine -c 2>&1; openssl list -cipher-algorithms 2>&1; openssl list -digest-algorithms 2>&1",
    # Whether the processor has Arm's instructions for AES; on another one, `flags` has such a word.
    "arm": "grep -sm1 '^Features.*aes' /proc/cpuinfo || echo none",
    "accelerator": "grep -E '^(name|driver|priority) ' /proc/crypto",
}
"""What is asked afterwards by way, to say what computed."""

_TEXT_FILE = "openssl.txt"
_UPTIME_FILE = "uptime.txt"
_TIMES_FILE = "times.txt"
_ABOUT_FILE = "openssl-about.txt"

SHELL = ShellTexts(__file__)
_KILOBYTE = 1000
_RESOLUTION_S = 0.015
"""A tick of times(2) at either end."""
_BEGIN = re.compile(r"\+DT:([^:]+):(\d+):(\d+)")
_RESULT = re.compile(r"\+R:(\d+):([^:]+):(\d+\.\d{6})")
_SIZES = re.compile(r"\+H((?::\d+)+)")
_RATES = re.compile(r"\+F:\d+:([^:]+)((?::\d+\.\d\d)+)")
_ENGINE = re.compile(r"^\((\w[\w-]*)\) .*\n \[(.*)\]$", re.MULTILINE)
_ALIAS = re.compile(r"^ *(\S+) => (\S+)$", re.MULTILINE)
_PROVIDED = re.compile(r"^ *(?:\{ (.*) \}|(\S+)) @ (\w[\w.-]*)$", re.MULTILINE)
_TIMES = re.compile(r"(\d+)m(\d+\.\d+)s (\d+)m(\d+\.\d+)s")
_SET = re.compile(r'Engine "\w+" set\.\n')
_DRIVER = re.compile(r"^name +: (\S+)\ndriver +: (\S+)\npriority +: (\d+)$", re.MULTILINE)
_UPTIMES = re.compile(r"(\d+\.\d\d) (\d+\.\d\d)\n")


def _speed(case: Case, way: str = "") -> Measure:
    """Measure one algorithm over openssl's six block sizes; one run serves its six rows. A `way` that the
    board lacks leaves nothing.
    """
    name, seconds = str(case.params["algorithm"]), int(case.params["seconds"])
    algorithm = _NAMES.get(name, name)
    chosen = f"{SHELL(way, algorithm=algorithm)}; " if way else ""
    chosen += f"{SHELL('des')}; " if algorithm.startswith("des-") else ""
    files = {"text_file": _TEXT_FILE, "times_file": _TIMES_FILE, "uptime_file": _UPTIME_FILE}
    asked = twice(_ABOUT.get(way, _ABOUT[""]), _ABOUT_FILE)
    command = SHELL("speed", **files, chosen=chosen, twice=asked, algorithm=algorithm, seconds=seconds)

    def parse(outputs: Outputs) -> list[Reading]:
        if way and _TEXT_FILE not in outputs:
            return []
        text, about = output(outputs, _TEXT_FILE), outputs.get(_ABOUT_FILE, "")
        if way == "accelerator":
            by = kernel_driver(text, about, algorithm)
        else:
            by = "" if way else computed_by(about, algorithm)
        variant = f"computed by {by}" if by else ""
        lacking = way == "arm" and read_twice(about) == "none\n"
        mark = "no ARM CE: the processor has not Arm's instructions for AES" if lacking else ""
        if "buffer_size" in case.params:
            rate = throughput(text, int(case.params["buffer_size"]), seconds)
            return [Reading(way or "throughput", rate / 1000 if way else rate, variant=variant, mark=mark)]
        times, uptime = output(outputs, _TIMES_FILE), output(outputs, _UPTIME_FILE)
        return [Reading(way or "cpu_load", cpu_load(times, uptime), variant=variant, mark=mark)]

    shared = " ".join(filter(None, ("openssl speed", algorithm, str(seconds), way)))
    return Measure(way or "speed", command, 12 * seconds + 60, 7 * seconds, parse=parse, shared=shared)


def kernel_driver(text: str, crypto: str, algorithm: str) -> str:
    """The kernel's preferred driver of an algorithm, by text and /proc/crypto (crypto/proc.c), twice, of a
    run by the kernel; raises RefusedOutput without engine or driver.
    """
    refuse(not _SET.match(text), "openssl did not take the engine of the kernel", text)
    cipher = re.fullmatch(r"(aes)-\d+-(\w+)", algorithm)
    name = f"{cipher[2]}({cipher[1]})" if cipher else algorithm
    mine = [(int(n), driver) for entry, driver, n in _DRIVER.findall(read_twice(crypto)) if entry == name]
    refuse(not mine, f"/proc/crypto has no {name}", crypto)
    return str(max(mine)[1])


def throughput(text: str, size: int, seconds: int) -> float:
    """Throughput in kB/s (1000 bytes) for blocks of `size` bytes: whole blocks over the nominal seconds, as
    in the guides (inventory), because openssl prints hundredths; over the elapsed time if the board was
    delayed. Raises RefusedOutput for twice the nominal time, an unfinished run, and unknown lines.
    """
    done = _measurements(text, seconds)
    refuse(size not in done, f"openssl did not measure blocks of {size} bytes", text)
    blocks, took = done[size]
    refuse(not seconds / 2 < took < seconds * 2, f"openssl ran for {took} s instead of {seconds} s", text)
    refuse(not blocks, f"openssl did not get through one block of {size} bytes", text)
    return blocks * size / (seconds if abs(took - seconds) <= _RESOLUTION_S else took) / _KILOBYTE


def computed_by(about: str, algorithm: str) -> str:
    """Which engine or provider computes an algorithm, as `engine devcrypto` or `provider default`; "" where
    openssl (before 3.0) computes by itself. `about` is what `openssl engine -c` and `openssl list` print,
    twice. A loaded engine that has the algorithm is asked first (ENGINE_register_all_complete).
    """
    about = read_twice(about)
    names = {algorithm.upper()}
    for alias, target in _ALIAS.findall(about):
        names |= {target.upper()} if alias.upper() in names else set()
    providers = []
    for several, one, provider in _PROVIDED.findall(about):
        aliases = {word.strip().upper() for word in (several or one).split(",")}
        if names & aliases:
            names |= aliases
            providers.append(provider)
    for engine, offers in _ENGINE.findall(about):
        if names & {word.strip().upper() for word in offers.split(",")}:
            return f"engine {engine}"
    return f"provider {' or '.join(dict.fromkeys(providers))}" if providers else ""


def cpu_load(times: str, uptimes: str) -> float:
    """CPU load in percent of a shell's children, by its builtin `times`, between two /proc/uptime."""
    garbled, raw = "the process's times are garbled", times + uptimes
    own, _, children = times.rstrip("\n").partition("\n")
    whole(_TIMES, own, garbled, raw)
    spent, clock = whole(_TIMES, children, garbled, raw), whole(_UPTIMES, uptimes, garbled, raw)
    took = float(clock[2]) - float(clock[1])
    user_m, user_s, system_m, system_s = map(float, spent.groups())
    busy = 60 * (user_m + system_m) + user_s + system_s
    # Both clocks count hundredths of a second, so a busy process may appear above 100 %.
    impossible = took <= 0 or busy > took * 1.02 + 0.02
    refuse(impossible, f"{busy:g} s of CPU in {took:g} s is impossible", raw)
    return min(100.0 * busy / took, 100.0)


def _measurements(text: str, seconds: int) -> dict[int, tuple[int, float]]:
    """Blocks done and elapsed seconds by block size, in openssl's order."""
    blocks: dict[int, tuple[int, float]] = {}
    lines = _SET.sub("", text, count=1).splitlines()
    refuse(len(lines) < 4 or not text.endswith("\n") or len(lines) % 2, "openssl's output is not whole", text)
    for begin, result in zip(lines[:-2:2], lines[1:-2:2], strict=True):
        begun, done = _BEGIN.fullmatch(begin), _RESULT.fullmatch(result)
        if not begun or not done or begun[1] != done[2] or int(begun[3]) in blocks:
            raise RefusedOutput(f"openssl printed something unexpected: {begin[:120]!r}", text)
        refuse(int(begun[2]) != seconds, f"openssl was to run for {begun[2]} s", text)
        blocks[int(begun[3])] = int(done[1]), float(done[3])
    missing = "openssl's last two lines are missing"
    head, rates = whole(_SIZES, lines[-2], missing, text), whole(_RATES, lines[-1], missing, text)
    other = [int(size) for size in head[1].split(":")[1:]] != list(blocks)
    refuse(other, "openssl's summary has other block sizes", text)
    summary = [float(rate) for rate in rates[2].split(":")[1:]]
    own = [count * size / took if took else 0.0 for size, (count, took) in blocks.items()]
    same = len(own) == len(summary) and all(
        math.isclose(*p, rel_tol=0.001, abs_tol=0.01) for p in zip(summary, own, strict=True)
    )
    refuse(not same, "openssl's summary does not match its measurements", text)
    return blocks


def _benchmark(name: str, arguments: dict[str, Any]) -> Benchmark:
    ways = _WAYS if name.startswith("crypto_comparison") else ("",)
    return Benchmark(**arguments, steps=lambda _, case, __: [_speed(case, way) for way in ways])


BENCHMARKS = tuple(_benchmark(*item) for item in declared(__file__).items())
