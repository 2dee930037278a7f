"""The store of many labs over years: its size, and how fast it is asked, judged by and shown."""

from __future__ import annotations

import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import msgspec

from evmperf.measure.runs import spool
from evmperf.model.exits import ExitStatus
from evmperf.publish.store import files, rows
from evmperf.publish.store.places import StoreFolder, partition
from selftests.instruments.speed.figures import Row, met, seconds, used
from selftests.support import years

_LABS = 5
_NIGHTS = 730
_SAMPLES = 3
_BENCHMARKS = (
    "boot_time_mmcsd",
    "emmc_ext4",
    "emmc_raw_fio_1g",
    "uboot_emmc_raw",
    "dhrystone",
    "stream",
    "mmcsd_ext4",
    "mmcsd_raw_fio_1g",
    "emmc_ext4_fio_1g",
    "lmbench",
)
_NOISE = "(1 + 0.02 * (hash(r.run, t.number, {s}.metric, {s}.repetition) % 1000003 / 1000003 - 0.5))"
_QUESTION = (
    "SELECT lab, board, date_trunc('month', began) AS month, avg(value) AS mean, count(*) AS n "
    "FROM samples WHERE benchmark = 'emmc_ext4' AND metric = 'write_throughput' GROUP BY ALL"
)


def whole() -> list[Row]:
    """200 boards: 100 million samples, 1.3 GB of disk."""
    return _measured(40)


def small() -> list[Row]:
    """10 boards: 5 million samples."""
    return _measured(2)


def _measured(boards: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="evmperf-speed-") as base:
        store, results = Path(base) / "store", Path(base) / "results"
        night = _template(results)
        _fill(StoreFolder(store), night, boards)
        size = sum(path.stat().st_size for path in store.rglob("*.parquet"))
        asked = [sys.executable, "-m", "evmperf"]
        where = {"EVMPERF_HISTORY": str(store)}
        count = _count(night) * boards * _LABS * _NIGHTS
        check = used(
            [*asked, "check", str(night), "--against", "last:30", "--results", str(Path(base) / "none")],
            (ExitStatus.OK, ExitStatus.FAILED),
            **where,
        )
        _say(f"store {size / 1e6:.0f} MB, check {check}")
        figure = used([*asked, "store", "query", "--csv", _QUESTION], **where)
        _say(f"figure {figure}")
        site = used([*asked, "site", "-o", str(Path(base) / "site"), "--from", "history"], **where)
    each = size / count
    what = f"{_LABS} labs, {boards * _LABS} boards, {_NIGHTS} nights, {count / 1e6:.1f} M samples"
    limit_s = 180 * boards * _LABS / 200
    return [
        Row(
            f"store of {what}",
            f"{size / 1e6:.0f} MB",
            figure=f"{each:.1f} bytes a sample",
            goal="<= 25",
            met=met(each, 25),
        ),
        Row(
            "  check of a night against last:30",
            seconds(check.wall_s),
            figure=f"{check.cpu_s:.1f} s CPU",
            goal="<= 3 s",
            met=met(check.wall_s, 3),
        ),
        Row("  its memory", f"{check.peak_mib:.0f} MiB", goal="<= 300 MiB", met=met(check.peak_mib, 300)),
        Row(
            "  a figure of all boards and nights",
            seconds(figure.wall_s),
            figure=f"{figure.cpu_s:.1f} s CPU",
            goal="<= 2 s",
            met=met(figure.wall_s, 2),
        ),
        Row(
            "  site of all",
            seconds(site.wall_s),
            figure=f"{site.cpu_s:.0f} s CPU",
            goal=f"<= {limit_s:.0f} s",
            met=met(site.wall_s, limit_s),
        ),
    ]


def _say(text: str) -> None:
    """What is known already: the whole takes many minutes."""
    print(text, file=sys.stderr, flush=True)


def _template(results: Path) -> Path:
    """A run of tonight, which all others are like."""
    years.write(results, ["board-0"], 1, _BENCHMARKS, samples=_SAMPLES)
    (folder,) = results.iterdir()
    run = spool.read_run(folder)
    run.lab = "lab-0"
    run.started_ns += int(timedelta(days=_NIGHTS).total_seconds()) * 10**9
    (folder / "run.json").write_bytes(msgspec.json.encode(run))
    return folder


def _count(folder: Path) -> int:
    return sum(len(result.samples) for result in spool.read_results(folder))


def _fill(store: StoreFolder, night: Path, boards: int) -> None:
    """The nights before that of each board, in files as joining leaves them. DuckDB makes them, as
    keeping them one by one takes 0.1 s each.
    """
    run, found = rows.of_run(night)
    columns = ", ".join(f'"{k}": {files.text(v)}' for k, v in rows.COLUMNS.items())
    with files.connection("1GB") as con, tempfile.NamedTemporaryFile(suffix=".json") as said:
        said.writelines(rows.lines(found))
        said.flush()
        con.execute(
            f"CREATE TABLE template AS FROM read_json('{said.name}', columns={{{columns}}}, "
            "format='newline_delimited')"
        )
        day_ns, tonight_ns = 86400 * 10**9, run.started_ns
        for number in range(boards * _LABS):
            run.lab, run.board = f"lab-{number % _LABS}", f"board-{number // _LABS}"
            starts: dict[str, list[int]] = {}
            for back in range(_NIGHTS, 0, -1):
                began = tonight_ns - back * day_ns
                where = partition(msgspec.structs.replace(run, started_ns=began))
                starts.setdefault(where, []).append(began)
            for where, began in starts.items():
                _year(con, store, where, run.board, began)


def _year(con, store: StoreFolder, where: str, board: str, began: list[int]) -> None:
    special = {
        "run": "r.run",
        "began_ns": "r.began",
        "kept_ns": "r.began",
        "started_ns": "r.began + t.started_ns - t.began_ns",
        "samples": "list_transform(t.samples, lambda s: {'metric': s.metric, 'value': s.value * "
        + _NOISE.format(s="s")
        + ", 'unit': s.unit, 'repetition': s.repetition, 'time_ns': r.began + s.time_ns - "
        "t.began_ns + (hash(r.run, t.number, s.repetition) % 1000000000)::BIGINT, "
        "'error': s.error})",
    }
    selected = ", ".join(special.get(name, f't."{name}"') + f' AS "{name}"' for name in rows.COLUMNS)
    con.execute(
        f"CREATE OR REPLACE TABLE nights AS SELECT began, '{board}-' || began AS run FROM "
        "(SELECT unnest($1::BIGINT[]) AS began)",
        [began],
    )
    with store.scratch() as scratch:
        files._copy(con, f"SELECT {selected} FROM template t, nights r {files._ORDER}", scratch)
        store.put(scratch, f"{where}/some-{max(began):020}-{len(began):06}-0.parquet")
