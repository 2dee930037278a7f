"""Figures that others measured, as runs: of a CSV file, asv's results, github-action-benchmark's data.js or
an InfluxDB 2 bucket. Board and run are named `foreign-...`, so that no list mixes them with measured ones,
and their kind of board, `foreign`, is compared with its own alone.
"""

import contextlib
import csv
import io
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from evmperf.boards import yamlfile
from evmperf.measure import provenance
from evmperf.measure.runs.spool import Spool, new_folder
from evmperf.model import inputs, limits
from evmperf.model.errors import UsageError
from evmperf.model.facts import Facts
from evmperf.model.results import HIGHER, LOWER, Result, Sample, Status
from evmperf.model.run import FOREIGN, Run
from evmperf.model.units import counted
from evmperf.publish.influx.client import Store, load
from evmperf.publish.report.exports import COLUMNS

_PREFIX = f"{FOREIGN}-"
_WAYS = {"lower": LOWER, "higher": HIGHER, "": "value"}
_LOWER = re.compile(r"(seconds|[num\u00b5\u03bc]?s(ec)?|[kmg]?i?b|bytes)(/(op|iter|call))?")
_HIGHER = re.compile(r".*(/ ?s(ec|econd)?|per second|ps|ops|hz)")
_TOOLS = {"customSmallerIsBetter": "lower", "customBiggerIsBetter": "higher"}
_LATEST_S, _LATEST_MS = 1e11, 1e14
"""Numbers up to which a time is taken for seconds and for milliseconds since the epoch; else nanoseconds."""
_FIELD = """
from(bucket: bucket) |> range(start: 0)
|> filter(fn: (r) => r._measurement == measurement and r._field == field)
|> map(fn: (r) => ({r with time_ns: int(v: r._time)}))
"""


class Told(NamedTuple):
    """One number and what is known of it; `run` is "" where its time names it."""

    board: str
    time_ns: int
    benchmark: str
    sample: Sample
    case: str = ""
    driver: str = FOREIGN
    profile: str = FOREIGN
    commit: str = ""
    run: str = ""
    lab: str = ""

    @property
    def row(self) -> tuple[str, str, str, str]:
        """What has one result in a run."""
        return self.benchmark, self.case, self.driver, self.profile


def read(file: Path, board: str, results: Path) -> tuple[list[Run], int]:
    """Put the figures of a file or folder into runs below `results`, each whole or not at all; returns the
    new ones, and how many were there before. `board` names them where the file does not. Raises UsageError
    with file and line, LabError for the disk and the database.
    """
    forms = {".csv": _csv, ".js": _github, ".yaml": _influx, ".yml": _influx}
    form: Callable[[Path, str], Iterable[Told]] | None = _asv if file.is_dir() else forms.get(file.suffix)
    if form is None:
        raise UsageError(
            f"{file}: is of no known form: give a .csv file, asv's folder of results, a data.js, or the "
            f"mapping of a bucket (.yaml); `evmperf help your-lab` has each"
        )
    new, before = [], 0
    runs: dict[tuple[object, ...], list[Told]] = defaultdict(list)
    for one in form(file, board or file.resolve().name.partition(".")[0]):
        runs[one.board, one.run or (one.time_ns, one.profile, one.commit)].append(one)
    for found in runs.values():
        rows = itertools.groupby(sorted(found, key=lambda one: one.row), key=lambda one: one.row)
        try:
            run = _run(file.name, found)
            made = [msgspec.convert(msgspec.to_builtins(_result(list(row))), Result) for _, row in rows]
        except (ValueError, OverflowError, OSError, msgspec.ValidationError) as error:
            raise UsageError(f"{file}: {found[0].board}, {found[0].benchmark}: {error}") from None
        if (results / run.id).exists():
            before += 1
            continue
        with new_folder(results) as scratch:
            Spool(scratch, run).append(*made)
            (scratch / run.id).rename(results / run.id)
        new.append(run)
    return new, before


def _run(file: str, found: list[Told]) -> Run:
    one = found[0]
    began = f"{datetime.fromtimestamp(one.time_ns // 10**9, UTC):%Y%m%dT%H%M%SZ}"
    digits = sha256(f"{one.time_ns} {one.profile} {one.commit}".encode()).hexdigest()[:4]
    which = f"{re.sub('[^a-zA-Z0-9.]', '', one.commit)[:8]}-{digits}".lstrip("-")
    name = one.run or f"{one.board.removeprefix(_PREFIX)}-{began}-{which}"
    return Run(
        id=_PREFIX + name.removeprefix(_PREFIX),
        board=_PREFIX + one.board.removeprefix(_PREFIX),
        profile=one.profile,
        kind=FOREIGN,
        lab=one.lab,
        started_ns=one.time_ns,
        ended_ns=max(one.time_ns, *(other.sample.time_ns for other in found)),
        outcome=f"{counted(len(found), 'figure')} of others, imported from {file}: not measured by evmperf.",
        facts=Facts.from_dict(
            {**provenance.project().to_dict(), "imported_from": file, "commit": one.commit}
        ),
    )


def _result(row: list[Told]) -> Result:
    one = row[0]
    samples = [told.sample for told in row]
    if not one.run:  # several at one time are repetitions
        samples = [msgspec.structs.replace(sample, repetition=n) for n, sample in enumerate(samples)]
    return Result(
        benchmark=one.benchmark,
        version=0,
        driver=one.driver,
        case=one.case,
        params={},
        profile=one.profile,
        status=Status.MEASURED,
        samples=tuple(samples),
        started_ns=one.time_ns,
    )


def _series(
    board: str, time_ns: int, series: str, value: float, unit: str, *, way: str = "", **more: str
) -> Told:
    """A number of a series; the metric says which way it gets better, as far as file or unit tell."""
    text = unit.strip().lower()
    way = way or ("lower" if _LOWER.fullmatch(text) else "higher" if _HIGHER.fullmatch(text) else "")
    return Told(board, time_ns, series, Sample(_WAYS[way], value, unit, 0, time_ns), **more)


def _csv(file: Path, board: str) -> Iterator[Told]:
    """Lines with the columns of `evmperf export --csv`, or with time, series, value, commit, unit, better."""
    lines = csv.DictReader(io.StringIO(inputs.text(file, limits.FOREIGN_BYTES)))
    columns = set(lines.fieldnames or ())
    is_exported = set(COLUMNS) <= columns
    if not is_exported and (missing := {"time", "series", "value"} - columns):
        raise UsageError(
            f"{file}: has no column {', '.join(sorted(missing))}: give those of `evmperf export --csv`, or "
            f"time, series, value and, if known, commit, unit, better (lower or higher)"
        )
    try:
        for line in lines:
            if None in line or None in line.values():
                raise UsageError("it has not as many cells as the head")
            value, way, unit = _number(line["value"]), line.get("better", ""), line.get("unit", "")
            if is_exported:
                error = _number(line["error"]) if line["error"] else None
                at = int(line["repetition"]), _time(line["time"]), error
                kept = {
                    name: line[name] for name in ("board", "benchmark", "case", "driver", "profile", "run")
                }
                sample = Sample(line["metric"], value, unit, *at)
                yield Told(time_ns=_time(line["began"]), sample=sample, lab=line["lab"], **kept)
            elif way in _WAYS:
                what = (board, _time(line["time"]), line["series"], value, unit)
                yield _series(*what, way=way, commit=line.get("commit", ""))
            else:
                raise UsageError(f"better is {way!r}: write lower or higher")
    except (ValueError, OverflowError, csv.Error, UsageError) as error:
        raise UsageError(f"{file} line {lines.line_num}: {error}") from None


class _AsvFile(msgspec.Struct):
    commit_hash: str
    date: limits.Count
    results: dict[str, Any]
    result_columns: list[str] = []
    env_name: str = FOREIGN


class _AsvResult(msgspec.Struct):
    result: list[limits.Real | None] | None = None
    params: list[list[str]] = []


def _asv(folder: Path, board: str) -> Iterator[Told]:
    """The folder of results of airspeed velocity: MACHINE/COMMIT-ENVIRONMENT.json beside benchmarks.json."""
    known = folder / "benchmarks.json"
    about = _json(known, dict[str, Any]) if known.exists() else {}
    files = [file for file in sorted(folder.glob("*/*.json")) if file.name != "machine.json"]
    if not files:
        raise UsageError(f"{folder}: holds no MACHINE/COMMIT-ENVIRONMENT.json: give asv's folder of results")
    for file in files:
        one = _json(file, _AsvFile)
        for name, kept in one.results.items():
            # A list has the file's columns; older asv has objects, or the number alone.
            columns, cells = (one.result_columns, kept) if isinstance(kept, list) else (["result"], [[kept]])
            by_name = kept if isinstance(kept, dict) else dict(zip(columns, cells, strict=False))
            of = _as(file, by_name, _AsvResult)
            unit = about[name].get("unit", "") if isinstance(about.get(name), dict) else ""
            for case, value in zip(itertools.product(*of.params), of.result or [], strict=False):
                if value is not None:  # measured
                    what = (file.parent.name, one.date * 10**6, name, value, unit)
                    yield _series(*what, case="|".join(case), commit=one.commit_hash, profile=one.env_name)


class _Bench(msgspec.Struct):
    name: str
    value: limits.Real
    unit: str = ""


class _GithubRun(msgspec.Struct):
    commit: dict[str, Any]
    date: limits.Count
    tool: str
    benches: list[_Bench]


class _GithubFile(msgspec.Struct):
    entries: dict[str, list[_GithubRun]]


def _github(file: Path, board: str) -> Iterator[Told]:
    """The data.js of github-action-benchmark: `window.BENCHMARK_DATA = {...}`."""
    for suite, runs in _json(file, _GithubFile).entries.items():
        for one in runs:
            for bench in one.benches:
                way, commit = _TOOLS.get(one.tool, ""), str(one.commit.get("id", ""))
                what = (board, one.date * 10**6, suite, bench.value, bench.unit)
                yield _series(*what, way=way, case=bench.name, commit=commit)


class _Mapping(msgspec.Struct, forbid_unknown_fields=True):
    bucket: str
    measurement: str
    field: str
    series: list[str] = []
    commit: str = ""
    unit: str = ""
    better: Literal["lower", "higher", ""] = ""


def _influx(file: Path, board: str) -> Iterator[Told]:
    """One field of one measurement in a bucket of the configured server, a series for each value of tags."""
    mapping = _as(file, yamlfile.read(file), _Mapping)
    asked = {"bucket": mapping.bucket, "measurement": mapping.measurement, "field": mapping.field}
    with Store(load()) as store:
        for tags in store.query(_FIELD, **asked):
            value = tags["_value"]
            if isinstance(value, int | float):
                series = "|".join(str(tags.get(name) or "-") for name in mapping.series)
                what = (board, tags["time_ns"], series or mapping.measurement, float(value), mapping.unit)
                yield _series(*what, way=mapping.better, commit=str(tags.get(mapping.commit) or ""))


def _json(file: Path, kind: Any) -> Any:
    """What stands in a file from its first brace on; asv writes NaN, which is no JSON."""
    text = inputs.text(file, limits.FOREIGN_BYTES)
    text = re.sub(r"(?<=[\[\s,:])-?(NaN|Infinity)(?=[\],\s}])", "null", text[max(text.find("{"), 0) :])
    try:
        return _as(file, msgspec.json.decode(text.rstrip("; \n")), kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{file}: {error}") from None


def _as(file: Path, value: object, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{file}: {error}") from None


def _number(text: str) -> float:
    with contextlib.suppress(ValueError):
        if "_" not in text and abs(value := float(text)) <= limits.REAL:
            return value
    raise UsageError(
        f"{text!r} is no number within {limits.REAL:g}, as 1.5: correct it, or leave the line out"
    )


def _time(text: str) -> int:
    """Nanoseconds since the epoch of an ISO time (UTC unless it says) or of a number."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        number = float(text)
        factor = 10**9 if number <= _LATEST_S else 10**6 if number <= _LATEST_MS else 1
        return round(number * factor) if factor > 1 else int(text.partition(".")[0])
    match = re.fullmatch(r"([^.]*)(?:\.(\d{1,9}))?([^.]*)", text)
    whole, fraction, zone = match.groups("") if match else (text, "", "")
    at = datetime.fromisoformat(whole + zone)
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()) * 10**9 + int(
        fraction.ljust(9, "0")
    )
