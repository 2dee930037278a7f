"""The store while several write it, are killed, and leave files that are torn."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import fsspec
import pytest
from moto.server import ThreadedMotoServer

from evmperf.measure.runs import spool
from evmperf.model.errors import LabError, UsageError
from evmperf.publish.store import files, rows, tables
from evmperf.publish.store.places import Bucket, StoreFolder
from evmperf.publish.store.source import StoredRuns, place
from selftests.support import spools

RUNS = 10
CASES = 3
WRITER = """
import os, signal, sys
from pathlib import Path
from evmperf.publish.store import files
from evmperf.publish.store.places import StoreFolder

store, results, step, when = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
calls = 0

def dying(method):
    def call(self, *arguments):
        global calls
        calls += 1
        if calls == when and step.startswith("before"):
            os.kill(os.getpid(), signal.SIGKILL)
        method(self, *arguments)
        if calls == when and step.startswith("after"):
            os.kill(os.getpid(), signal.SIGKILL)
    return call

if when:
    name = step.split()[1]
    setattr(StoreFolder, name, dying(getattr(StoreFolder, name)))
print("ready", flush=True)
for folder in sorted(results.iterdir()):
    files.add(StoreFolder(store), folder)
"""


@pytest.fixture
def results(tmp_path):
    """Runs of one board in one year, more than are read as they are."""
    return made(tmp_path / "results", RUNS)


def made(results, count, first=0, **changes):
    for number in range(first, count):
        run = spools.a_run(number, started_ns=spools.START_NS + number * 10**12, **changes)
        cases = [spools.a_result(run, case) for case in range(CASES)]
        spools.write(results, run, cases)
    return results


def writer(store, results, step="", when=0):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(store), str(results), step, str(when)],
        stdout=subprocess.PIPE,
        text=True,
    )


def held(store):
    """Each run of a store with its results."""
    return [(e.run, e.results()) for e in StoredRuns(store).runs()]


def spooled(results):
    return [(spool.read_run(folder), spool.read_results(folder)) for folder in sorted(results.iterdir())]


def counted(store):
    """How many runs and samples a query sees."""
    found = StoredRuns(store).asked(
        None,
        "SELECT count(*) FILTER (record = 'run') AS runs, count(DISTINCT run) AS different, "
        "coalesce(sum(len(samples)), 0) AS samples FROM {rows}",
    )
    return tuple(next(iter(found), {"": 0, " ": 0, "  ": 0}).values())


def exactly(store, results, count=RUNS):
    assert held(store) == spooled(results)
    assert counted(store) == (count, count, count * CASES * 2)


def test_a_recorded_run_comes_back_as_it_was(tmp_path):
    folder = spools.recorded(tmp_path / "results")
    store = StoreFolder(tmp_path / "a [store]*")
    assert files.add(store, folder)
    assert not files.add(store, folder)  # the same again
    ((run, results),) = held(store)
    assert run == spool.read_run(folder)
    assert results == spool.read_results(folder)
    found = StoredRuns(store).asked(None, "SELECT * FROM {rows} WHERE number > 0 ORDER BY number")
    assert [rows.to_record(row) for row in found] == list(spool.read_records(folder))


def test_names_are_no_paths(tmp_path):
    names = ["../../up", "a/b", "..", "*", "x" * 80, "€ ' [1]", ""]
    for number, name in enumerate(names):
        run = spools.a_run(number, board=name, lab=name)
        files.add(StoreFolder(tmp_path / "store"), spools.write(tmp_path / "results", run, []))
    assert {p.name for p in tmp_path.iterdir()} == {"store", "results"}
    assert {p.name for p in (tmp_path / "store").iterdir()} == {"v1"}
    for name in names:
        (found,) = StoredRuns(StoreFolder(tmp_path / "store"), name).runs(name)
        assert (found.run.lab, found.run.board) == (name, name)
    run = spools.a_run(99, board="b" * 251)
    folder = spools.write(tmp_path / "results", run, [])
    with pytest.raises(UsageError, match=r"'b{60}'.* board "):
        files.add(StoreFolder(tmp_path / "store"), folder)


def test_a_run_that_is_kept_again_counts_once(tmp_path, results):
    store = StoreFolder(tmp_path / "store")
    for folder in sorted(results.iterdir()):
        files.add(store, folder)
    changed = sorted(results.iterdir())[3]
    run = spool.read_run(changed)
    spool.append_records(changed, [spools.a_result(run, CASES)])
    assert files.add(store, changed)
    assert held(store) == spooled(results)
    assert counted(store) == (RUNS, RUNS, (RUNS * CASES + 1) * 2)


def test_files_are_joined_and_removed_when_nobody_reads_them(tmp_path, results, monkeypatch):
    store = StoreFolder(tmp_path / "store")
    monkeypatch.setattr(files, "_READ_S", -1)
    for number, folder in enumerate(sorted(results.iterdir()), 1):
        files.add(store, folder)
        assert counted(store)[:2] == (number, number)
    (year,) = store.root.glob("v1/*/*/*")
    with files.connection() as con:
        for _ in range(2):
            files.tidy(con, store, str(year.relative_to(store.root)))
    assert len(list(year.iterdir())) == 1
    exactly(store, results)


SPILLER = """
import os, signal
from evmperf.publish.store import files
with files.connection("32MB") as con:
    con.execute("CREATE TABLE t AS SELECT range AS n, md5(range::VARCHAR) AS text FROM range(2000000)")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_command_spilled_is_removed_after_a_day_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("EVMPERF_CACHE", str(tmp_path))
    subprocess.run([sys.executable, "-c", SPILLER], check=False)
    (spilled,) = tmp_path.glob("spilled-*")
    assert list(spilled.iterdir())
    others = [tmp_path / "spilled-milk", tmp_path / ("spilled-" + "0" * 16)]
    for folder in others:
        folder.mkdir()
        (folder / "mine.txt").write_text("mine")
    for folder in (spilled, *others):
        days_ago = time.time() - 2 * 86_400
        with files.connection():
            assert folder.exists()
        os.utime(folder, (days_ago, days_ago))
    with files.connection():
        assert not spilled.exists()
        assert all((folder / "mine.txt").exists() for folder in others)


@pytest.mark.parametrize(
    ("step", "when"),
    [
        ("before put", 1),
        ("after put", 1),
        ("before put", 9),
        ("before put", 10),
        ("after put", 10),
        ("before remove", 1),
        ("after remove", 3),
    ],
)
def test_a_kill_at_any_step_loses_and_doubles_nothing(tmp_path, results, step, when):
    store = tmp_path / "store"
    program = WRITER.replace("calls = 0", "calls = 0\nfiles._READ_S = -1", 1)
    words = [sys.executable, "-c", program, store, results, step, str(when)]
    count = RUNS * 2 if "remove" in step else RUNS
    made(results, count, first=RUNS)  # files are removed when they are joined the next time
    ended = subprocess.run(words, stdout=subprocess.DEVNULL, check=False)
    assert ended.returncode == -signal.SIGKILL
    runs, different, samples = counted(StoreFolder(store))
    assert runs == different
    assert samples == runs * CASES * 2
    subprocess.run([*words[:-1], "0"], stdout=subprocess.DEVNULL, check=True)
    exactly(StoreFolder(store), results, count)


def test_writers_at_once_that_are_killed_at_random(tmp_path, results):
    """Several write the same runs; each is killed and begins again, until they come through."""
    store, generator = tmp_path / "store", random.Random(1)
    for _ in range(2):
        running = [writer(store, results) for _ in range(3)]
        for process in running:
            assert process.stdout.readline() == "ready\n"
        time.sleep(generator.random() * 2)  # any moment will do
        for process in running:
            process.kill()
            process.communicate()
        runs, different, samples = counted(StoreFolder(store))
        assert (runs, samples) == (different, different * CASES * 2)
    running = [writer(store, results) for _ in range(2)]
    for process in running:
        process.communicate()
        assert process.returncode == 0
    exactly(StoreFolder(store), results)


@pytest.mark.parametrize("damage", ["cut", "empty", "middle"])
def test_a_torn_file_costs_its_runs_only_and_they_come_again(tmp_path, results, damage, caplog):
    store = StoreFolder(tmp_path / "store")
    first, *others = sorted(results.iterdir())
    for folder in [first, *others[:3]]:
        files.add(store, folder)
    file = min(store.root.rglob("*.parquet"))
    data = file.read_bytes()
    middle = data[:10] + b"\xff" * 200 + data[210:]
    file.write_bytes({"cut": data[:-50], "empty": b"", "middle": middle}[damage])
    assert held(store) == spooled(results)[1:4]
    assert "is damaged" in caplog.text
    assert file.name in caplog.text
    for folder in [first, *others]:
        files.add(store, folder)
    exactly(store, results)
    assert file.exists()  # a person looks at it


@pytest.fixture
def s3(monkeypatch):
    """An S3 server with the bucket `lab`."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in {**keys, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
        monkeypatch.setenv(name, value)
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/lab", method="PUT")).close()
    yield
    server.stop()


@pytest.mark.parametrize("url", ["memory://lab/store", "s3://lab/store"])
def test_a_store_of_an_object_store_is_the_same(request, tmp_path, results, url):
    writers = 2
    if url.startswith("s3:"):
        request.getfixturevalue("s3")
    else:
        fsspec.filesystem("memory").rm("/", recursive=True)
        writers = 1  # all who have opened a file of fsspec's memory share its position
    store = place({"EVMPERF_HISTORY": url})
    assert isinstance(store, Bucket)
    folders = sorted(results.iterdir())
    # Each writer has every run.
    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(lambda order: [files.add(store, f) for f in order], (folders, folders[::-1])))
    exactly(store, results)


def test_a_url_of_a_folder_is_that_folder(tmp_path, results):
    store = place({"EVMPERF_HISTORY": f"file://{tmp_path}/store"})
    for folder in results.iterdir():
        files.add(store, folder)
    exactly(StoreFolder(tmp_path / "store"), results)


def test_what_is_kept_after_a_clock_went_ahead_counts(tmp_path, results, monkeypatch):
    store, folder = StoreFolder(tmp_path / "store"), min(results.iterdir())
    with monkeypatch.context() as patch:
        ahead_ns = time.time_ns() + 3 * 86_400 * 10**9
        patch.setattr(time, "time_ns", lambda: ahead_ns)
        files.add(store, folder)
    run = spool.read_run(folder)
    spool.append_records(folder, [spools.a_result(run, 99)])
    assert files.add(store, folder)
    assert StoredRuns(store).runs()[0].results() == spool.read_results(folder)


def test_each_flipped_bit_is_named(tmp_path, results, caplog):
    store = StoreFolder(tmp_path / "store")
    files.add(store, min(results.iterdir()))
    (name,) = store.files("v1/*/*/*/*.parquet")
    file = store.root / name
    whole, generator = file.read_bytes(), random.Random(3)
    for _ in range(40):
        bit = generator.randrange(len(whole) * 8)
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        caplog.clear()
        spool.leave_out.cache_clear()
        assert StoredRuns(store).runs() == []
        assert file.name in caplog.text


def _of_other_columns(file, target):
    with duckdb.connect() as con:
        target = target.with_name(f"one-{1:020}-{'0' * 32}.parquet")
        con.execute(f"COPY (SELECT 1 AS run, 'x' AS record) TO '{target}' (FORMAT parquet)")
    return target


def _copied(file, target):
    return shutil.copy(file, target.with_name(f"{file.stem} (copy).parquet"))


def _moved(file, target):
    other = target.parents[1] / "year=1999"
    other.mkdir()
    return shutil.copy(file, other / file.name)


@pytest.mark.parametrize("alien", [_of_other_columns, _copied, _moved])
def test_an_alien_file_is_named_and_costs_nothing(tmp_path, results, alien, caplog):
    store = StoreFolder(tmp_path / "store")
    for folder in results.iterdir():
        files.add(store, folder)
    file = store.root / store.files("v1/*/*/*/*.parquet")[-1]
    other = alien(file, file)
    exactly(store, results)
    assert Path(other).name in caplog.text
    assert tables.ask(store, "SELECT count(*) FROM runs").rows == [(RUNS,)]


def test_a_folder_that_cannot_be_written_is_named_with_the_remedy(tmp_path, results):
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="name another folder with EVMPERF_HISTORY"):
        files.add(StoreFolder(tmp_path / "file"), min(results.iterdir()))


def test_a_later_layout_is_not_read(tmp_path):
    (tmp_path / "v2").mkdir()
    with pytest.raises(UsageError, match="update evmperf"):
        StoredRuns(StoreFolder(tmp_path)).runs()


def test_a_hostile_run_json_is_data(tmp_path):
    run = spools.a_run()
    folder = spools.write(tmp_path / "results", run, [])
    said = json.loads((folder / "run.json").read_text())
    said |= {"facts": {"k": "\x00'); DROP TABLE runs; --"}, "place": "{rows}", "release": "$1"}
    (folder / "run.json").write_text(json.dumps(said))
    files.add(StoreFolder(tmp_path / "store"), folder)
    exactly_one = held(StoreFolder(tmp_path / "store"))
    assert exactly_one == [(spool.read_run(folder), [])]
