"""A case file: everything known of one case of a run, in one file without the lab's secrets.

It is JSON, compressed by gzip: `format`, `run` (of run.json), `records` (of results.jsonl) and
`files` (text by its name below the run's folder). Whoever reads it makes a run's folder of it, so
that every command can work on it. It comes from anybody: names, sizes and contents are checked.
"""

import functools
import gzip
import ipaddress
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from evmperf.boards.console import record as console
from evmperf.measure.runs import spool
from evmperf.model import limits
from evmperf.model.concealing import conceal
from evmperf.model.errors import LabError, UsageError
from evmperf.model.places import is_plain
from evmperf.model.results import Result

_FORMAT = "evmperf-case/1"
_FACTS = ("dmesg", "modules", "mounts", "mitigations", "cpufreq")
"""Documents that go out: the device tree has serial numbers, in hexadecimal digits."""
_CONSOLE = "facts/console"
"""The console's text of the case: pieces of the record could cut a secret in two."""
_UNSAID = {"addresses", "place", "lab"}

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_PUBLIC = (
    r"(?:[\w-]+\.)*(?:(?:kernel|debian|yoctoproject|openembedded|freedesktop|gnu|infradead|beagleboard|archlinux"
    r"|arago-project)\.org|(?:ti|armbian|ubuntu|github|redhat)\.com|(?:readthedocs|github|systemd|bbb)\.io|linux\.dev"
    r"|(?:denx|swb)\.de|busybox\.net|linux\.it)\b"
)
"""Hosts that programs name to everybody."""
_UNIT = r"(?![0-9a-f]+(?:\b|port|_))(?<!getty@)(?<!modprobe@)(?<!fsck@)"
"""What is behind an @ is no address of a device tree, and no name of a unit of systemd."""
_GENERIC = r"(?!(?:oe-|local)?host(?:name)?\b)"
_PATTERNS = {
    "MAC": r"(?i)\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b",
    "UUID": r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<=PARTUUID=)[\w-]+",
    "serial": r"(?i)(?:(?<=serial#)|(?<=serial number)|(?<=serialnumber)|(?<=serialno)|(?<=serial_number))"
    r"\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?[\w-]{3,}(?![\w-]*[.:]\w)"
    # A serial port is called serial, too: a number has digits, and is no name of a port or of its driver.
    r"|(?:(?<=\bserial)|(?<=\bcid))\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?(?!tty)(?=[\w-]*\d)[\w-]{4,}(?![\w/-])",
    "address": rf"(?<![\w.])(?<!version )(?<!version: )(?<!utils\) )(?:{_OCTET}\.){{3}}{_OCTET}"
    r"(?![\w]|\.\d|-[a-z])"
    r"|(?<![\w:.])(?=[0-9a-fA-F:]{0,39}(?:::|(?::[0-9a-fA-F]{1,4}){7}))[0-9a-fA-F:]{3,39}(?![\w:])",
    "host": rf"(?<=://)(?!{_PUBLIC})[\w.-]+|(?<=[\w)]@)(?=[A-Za-z]){_UNIT}{_GENERIC}(?!{_PUBLIC})[\w.-]+\b(?!=)"
    r"|(?<=/home/)(?!root\b)[\w.-]+",
}
"""By kind, in the order in which they are replaced, after passwords and tokens. Releases such as 11.02.08.02
are no addresses.
"""
_SECRET = re.compile(
    r"(?i)(?:.*[_.-])?(?:serial|cid|uuid|mac|token|password|secret|host(?:name)?|user)(?:[_.-].*)?"
)
"""Names of facts whose values do not go out."""
_NAMES = {"id", "board", "release", "record", "benchmark", "case", "driver", "profile", "params"}
"""What goes out as it is: words of the catalogue, whose rows have addresses of TI's testers."""
_LEAST = 6
"""Characters of a secret that is looked for everywhere."""


class CaseFile(msgspec.Struct, frozen=True):
    """What such a file has."""

    format: str
    run: dict[str, object]
    records: tuple[dict[str, object], ...]
    files: dict[str, str]


class _Unread(msgspec.Struct, frozen=True):
    """A case file whose run and records are still text: their size is to be looked at first."""

    format: str
    run: msgspec.Raw
    records: msgspec.Raw
    files: dict[str, str]


class Hiding:
    """Replaces what names a lab, a machine or a person; the same each time by the same word."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self.replacements: dict[str, str] = {}
        """What was found, and what stands there instead."""
        self._bare: dict[str, str] = {}
        """The same where it stands without the word that tells what it is."""
        names = [re.escape(name) for name in sorted(set(hosts), key=len, reverse=True) if len(name) > 1]
        self._hosts = re.compile(rf"(?<![\w-])(?:{'|'.join(names)})(?![\w-])") if names else None

    def text(self, text: str) -> str:
        """A text without."""
        text = conceal(text, functools.partial(self._instead, "key"))
        for kind, pattern in _PATTERNS.items():
            text = re.sub(pattern, functools.partial(self._instead, kind), text)
        for bare, word in self._bare.items():
            alone = rf"(?<![A-Za-z0-9]){re.escape(bare)}(?![A-Za-z0-9])"
            text = re.sub(alone, word.replace("\\", r"\\"), text)
        return self._hosts.sub(functools.partial(self._instead, "host"), text) if self._hosts else text

    def value(self, value: Any) -> Any:
        """A JSON value without; keys stay, as programs read them."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                key: self._instead(str(key), part)
                if isinstance(part, str) and part and _SECRET.fullmatch(str(key))
                else self.value(part)
                for key, part in value.items()
            }
        return [self.value(part) for part in value] if isinstance(value, list | tuple) else value

    def _instead(self, kind: str, match: re.Match[str] | str) -> str:
        secret = match if isinstance(match, str) else match[0]
        if secret in self.replacements.values() or (kind == "address" and not _is_secret(secret)):
            return secret
        same = sum(word.startswith(f"({kind} ") for word in self.replacements.values())
        word = self.replacements.setdefault(secret, f"({kind} {same + 1})")
        if len(bare := secret.strip(" \t:=\\\"'")) >= _LEAST:
            self._bare[bare] = word
        return word


def _is_secret(text: str) -> bool:
    """Whether it is the address of one machine: no loopback, mask, or address of nobody or everybody."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    everybody = address.is_loopback or address.is_unspecified or address.is_multicast
    return not everybody and not text.startswith("255.")


def pack(folder: Path, benchmark: str, case: str, hosts: Iterable[str]) -> tuple[bytes, list[str]]:
    """The case file of one case of a run, and what goes out with it, a line each; `hosts` are names
    that are hidden besides those of the run. Raises UsageError for a case that is not there.
    """
    run = spool.read_run(folder)
    chosen = [r for r in spool.read_results(folder) if (r.benchmark, r.case) == (benchmark, case)]
    if not chosen:
        raise UsageError(f"{run.id} has no case {benchmark} {case!r}: evmperf show lists them")
    hiding = Hiding([*hosts, run.lab, run.place])
    run_parts = {
        name: part for name, part in msgspec.to_builtins(run.to_dict()).items() if name not in _UNSAID
    }
    records = [msgspec.json.decode(spool.line(result)) for result in chosen]
    files = dict(_files(folder, chosen))
    for _ in range(2):  # what is told late may stand early
        hidden = [hiding.value(one) | {n: one[n] for n in _NAMES & set(one)} for one in (run_parts, *records)]
        packed = CaseFile(_FORMAT, hidden[0], tuple(hidden[1:]), hiding.value(files))
    listed = [
        f"run.json: {', '.join(sorted(packed.run))}",
        *(f"{n}: {len(t)} bytes" for n, t in files.items()),
    ]
    listed += sorted(f"replaced by {word}: {secret}" for secret, word in hiding.replacements.items())
    return gzip.compress(msgspec.json.encode(packed), mtime=0), listed


def _files(folder: Path, results: list[Result]) -> Iterator[tuple[str, str]]:
    raw = [name for result in results for name in (*result.raw, *(f.raw for f in result.failures if f.raw))]
    for name in [*dict.fromkeys(raw), *(f"facts/{name}" for name in _FACTS)]:
        path = folder / name
        if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            yield name, path.read_text(errors="replace")
    log = folder / spool.CONSOLE_LOG
    if not log.is_file():
        return
    try:
        pieces = [piece for piece in console.read(log) if piece.kind == "<"]
    except LabError:
        return
    spans = [(r.started_ns, r.started_ns + r.duration_s * 1e9) for r in results]
    output = b"".join(p.data for p in pieces if any(a <= p.wall_ns <= b for a, b in spans))
    yield _CONSOLE, output[: limits.CASE_BYTES // 2].decode(errors="replace")


_unpacked: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that go when the process ends."""


def unpack(file: Path) -> Path:
    """The folder of a run with a file's case, for this process; raises UsageError for another file."""
    try:
        with file.open("rb") as opened:
            packed = opened.read(limits.CASE_BYTES + 1)
        unpacker = zlib.decompressobj(wbits=31)
        text = unpacker.decompress(packed, limits.CASE_BYTES + 1)
        if len(text) > limits.CASE_BYTES or len(packed) > limits.CASE_BYTES:
            raise UsageError(f"{file}: is larger than {limits.mib(limits.CASE_BYTES)}: not read")
        case = msgspec.json.decode(text, type=_Unread)
        if max(len(case.run), len(case.records)) > limits.CASE_RECORD_BYTES:
            most = limits.mib(limits.CASE_RECORD_BYTES)
            raise UsageError(f"{file}: its run or its records are larger than {most}: not read")
        records = msgspec.json.decode(case.records, type=tuple[msgspec.Raw, ...])
    except (OSError, zlib.error, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: is neither a run nor a case file: {error}") from None
    if case.format != _FORMAT or len(case.files) > limits.STEP_FILES:
        raise UsageError(f"{file}: is of format {case.format[:40]!r}, or has too many files: update evmperf")
    bad = [name for name in case.files if not all(map(is_plain, name.split("/")))]
    if bad or any(name.split("/")[0] not in ("raw", "facts") for name in case.files):
        raise UsageError(f"{file}: has a file with a name that is not one of evmperf's: not read")
    scratch = tempfile.TemporaryDirectory(prefix="evmperf-case-")
    folder = Path(scratch.name) / "case"
    folder.mkdir()
    (folder / "run.json").write_bytes(case.run)
    # Each as one line, however it was written.
    lines = (msgspec.json.format(bytes(record), indent=-1) + b"\n" for record in records)
    (folder / spool.RECORDS).write_bytes(b"".join(lines))
    try:
        for name, content in case.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{file}: has a file {name[:80]!r} that cannot be written: {error.strerror}"
        ) from None
    spool.read_run(folder)
    _unpacked.append(scratch)
    return folder
