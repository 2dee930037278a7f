"""The records of a run as rows of one table, and back, with nothing lost.

A row is a record of the spool. What is asked for often has a column, everything else is JSON in
`rest`. Samples, figures of a guide and marks of a boot are lists within their record's row: a run
is one file then, which is there or not, and what describes a record is stored once.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from evmperf.measure.runs import spool
from evmperf.model.records import KINDS
from evmperf.model.results import SpoolRecord
from evmperf.model.run import Run

COLUMNS = msgspec.yaml.decode(Path(__file__).with_name("columns.yaml").read_bytes(), type=dict[str, str])
"""Name to DuckDB's type, in their order."""

_KINDS = {str(kind.__struct_config__.tag): kind for kind in KINDS}
_OF_ROW = ("record", "run", "began_ns", "number", "kept_ns", "digest", "rest", "facts")


def of_run(folder: Path) -> tuple[Run, Iterator[dict[str, Any]]]:
    """A run and its rows, the run's own first; both raise what reading the spool raises."""
    run = spool.read_run(folder)
    records = (_row(run, _plain(one), n) for n, one in enumerate(spool.read_records(folder), 1))
    return run, itertools.chain([_row(run, {"record": "run"} | _plain(run), 0)], records)


def _plain(value: Run | SpoolRecord) -> dict[str, Any]:
    source = value.to_dict() if isinstance(value, Run) else value
    fields: dict[str, Any] = msgspec.to_builtins(source)
    return fields


def _row(run: Run, fields: dict[str, Any], number: int) -> dict[str, Any]:
    row = {name: fields.pop(name) for name in COLUMNS if name in fields and name not in _OF_ROW[1:]}
    if number == 0:
        row["facts"] = msgspec.json.encode(fields.pop("facts")).decode()
    for name in ("lab", "board", "id") if number == 0 else ():
        del fields[name]
    rest = msgspec.json.encode(fields).decode()
    return row | {"run": run.id, "began_ns": run.started_ns, "number": number, "rest": rest}


def lines(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """The rows as lines of JSON, for DuckDB."""
    return (msgspec.json.encode(row) + b"\n" for row in rows)


def to_run(row: Mapping[str, Any]) -> Run:
    """The run of a row, which has `lab` and `board`."""
    fields = _fields(row) | {name: row[name] for name in ("lab", "board")} | {"id": row["run"]}
    fields["facts"] = msgspec.json.decode(row["facts"])
    return Run.from_dict(fields)


def to_record(row: Mapping[str, Any]) -> SpoolRecord:
    """The record of a row."""
    return msgspec.convert(_fields(row) | {"record": row["record"]}, _KINDS[row["record"]])


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says: its columns that have something, and the rest."""
    columns = {k: _compact(v) for k, v in row.items() if v is not None and k in COLUMNS}
    rest: dict[str, Any] = msgspec.json.decode(row["rest"])
    return rest | {name: value for name, value in columns.items() if name not in _OF_ROW}


def _compact(value: Any) -> Any:
    """A list of structs without what they do not have."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    return [{k: v for k, v in one.items() if v is not None} for one in value]
