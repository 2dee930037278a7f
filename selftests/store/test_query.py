"""Questions to the store: those of the page, hostile ones, and what they may not do."""

import csv
import io
import json
import re
import time
from pathlib import Path

import pytest

from evmperf.commands.cli.main import main
from evmperf.measure.runs import spool
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.errors import EvmperfError, LabError, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.records import VerdictRecord
from evmperf.publish.store import files, tables
from evmperf.publish.store.limited import limited
from evmperf.publish.store.places import StoreFolder
from selftests.support import runs, spools

ROOT = Path(__file__).parents[2]
QUESTIONS = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/store.md").read_text(), re.DOTALL)
BOARD = "am64xx-hsevm"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A lab's store: nights of a board, a recorded run, a run of everything, the published."""
    base = tmp_path_factory.mktemp("store")
    runs.history(base / "results", nights=4, board=BOARD, os="RT-linux")
    spools.recorded(base / "results")
    whole = spools.of_catalogue(base / "results")
    worse = VerdictRecord("emmc_ext4", "4k", "write_throughput", "emmc", "worse", change=-0.2)
    better = VerdictRecord("emmc_ext4", "4k", "read_throughput", "emmc", "worse")
    spool.append_verdicts(whole, [better, worse])
    spool.append_verdicts(whole, [VerdictRecord(*better.key, "emmc", "same")])
    place = StoreFolder(base / "store")
    for folder in [*(base / "results").iterdir(), *(ROOT / "baselines").glob("guide-*")]:
        files.add(place, folder)
    return place


@pytest.fixture
def asked(store, monkeypatch, capsys):
    """Call `evmperf store query`; returns status, output and errors."""
    monkeypatch.setenv("EVMPERF_HISTORY", str(store.root))

    def ask(*words):
        status = main(["store", "query", *words])
        return status, *capsys.readouterr()

    return ask


def test_the_page_has_ten_questions():
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.split("\n")[-2][:40])
def test_each_question_of_the_page_has_an_answer(store, question):
    answer = tables.ask(store, question)
    assert answer.rows
    assert None not in {row[0] for row in answer.rows}


def test_answers_are_those_of_the_spools(store):
    results = store.root.parent / "results"
    records = [r for folder in results.iterdir() for r in spool.read_records(folder)]
    samples = sum(len(r.samples) for r in records if hasattr(r, "samples"))
    boots = [r for r in records if hasattr(r, "marks")]

    def one(question):
        return tables.ask(store, question).rows[0][0]

    assert one("SELECT count(*) FROM samples") == samples > 1000
    assert one("SELECT count(*) FROM marks") == sum(len(boot.marks) for boot in boots) > 10
    assert one("SELECT count(*) FROM boots") == len(boots)
    assert one("SELECT count(failure) FROM boots") == sum(boot.failure is not None for boot in boots)
    assert one("SELECT count(*) FROM runs WHERE kind <> 'guide'") == len(list(results.iterdir()))
    assert tables.ask(store, "SELECT metric, verdict FROM verdicts ORDER BY ALL").rows == [
        ("read_throughput", "same"),
        ("write_throughput", "worse"),
    ]
    published = sum(
        len(result.published)
        for folder in (ROOT / "baselines").glob("guide-*")
        for result in spool.read_results(folder)
    )
    assert one("SELECT count(*) FROM published") == published > 500
    kernel = "SELECT value FROM facts WHERE name = 'kernel' AND board = 'virtual-evm'"
    assert one(kernel) == spool.read_run(results / spools.RECORDED.name).facts.kernel


@pytest.mark.parametrize(
    "question",
    [
        "SELECT 1; SELECT 2",
        "",
        "SELEC",
        "SELECT nothing FROM runs",
        "SET threads = 1",
        "COPY (SELECT 1) TO '/tmp/evmperf-hostile'",
        "ATTACH ':memory:' AS x",
        "LOAD httpfs",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_csv('http://127.0.0.1:9/')",
        "CREATE TABLE x AS SELECT 1",
        "DROP VIEW runs",
        "PRAGMA database_list",
        "SELECT 'a'::INT FROM runs",
        "SELECT getenv('HOME')",
    ],
)
def test_a_question_reads_the_tables_and_nothing_else(asked, question):
    status, out, error = asked(question)
    assert status == ExitStatus.USAGE
    assert out == ""
    assert error.startswith("evmperf: ")


@pytest.mark.parametrize(
    "question",
    [
        "SELECT * FROM range(1000000000000) t(a) ORDER BY hash(a)",
        "SELECT * FROM range(2000000)",
        "SELECT list(a) FROM range(1000000000) t(a)",
        "SELECT repeat('x', 1000000) FROM range(5000)",
        "SELECT {a: range(1000)} FROM range(900000)",
    ],
)
def test_a_question_takes_no_more_than_it_may(asked, question):
    status, _, error = asked(question, "--timeout", "5s")
    assert status == ExitStatus.USAGE
    assert re.search("no answer within|more than|Out of Memory|takes more than 1 GB", error)


def test_an_answer_as_table_csv_and_json(asked):
    question = f"SELECT board, count(*) AS n FROM runs WHERE board = '{BOARD}' GROUP BY board"
    head, row = asked(question)[1].splitlines()
    assert (head.split(), row.split()) == (["board", "n"], [BOARD, "5"])
    assert list(csv.reader(io.StringIO(asked(question, "--csv")[1]))) == [["board", "n"], [BOARD, "5"]]
    assert json.loads(asked(question, "--json")[1]) == [{"board": BOARD, "n": 5}]
    assert asked("SELECT * FROM runs WHERE false")[0] == ExitStatus.NOTHING


def test_the_memory_of_an_answer_counts(tmp_path):
    """Also that of Python: DuckDB's limit is its own."""

    def work(out):
        rows = [bytearray(1 << 20) for _ in range(3000)]
        return len(rows) % 7

    with pytest.raises(UsageError, match="takes more than 1 GB of memory"):
        limited(work, io.StringIO(), 300, tables.MOST_BYTES)


def test_an_end_of_the_work_is_that_of_the_caller():
    def fails(out):
        out.write("half an answer")
        raise LabError("the disk is away")

    for work, raised in (
        (fails, "the disk is away"),
        (lambda out: time.sleep(300), "no answer within 0.1 s"),
    ):
        out = io.StringIO()
        with pytest.raises(EvmperfError, match=raised):
            limited(work, out, 0.1 if work is not fails else 300, tables.MOST_BYTES)
        assert out.getvalue() == ""


def test_many_runs_are_one_file_a_board_and_tell_how_far_they_are(tmp_path, monkeypatch):
    runs.history(tmp_path / "results", nights=30)
    monkeypatch.setattr(tables, "_TELL_S", 0)
    told = []
    with tables.opened(SpoolFolder(tmp_path / "results"), told.append) as place:
        assert len(place.files("v1/*/*/*/*.parquet")) == 1
        assert tables.ask(place, "SELECT count(DISTINCT run) FROM samples").rows == [(30,)]
    assert told[-1] == "29 of 30 runs are read"


def test_a_folder_of_runs_is_asked_without_a_store(store, asked):
    results = store.root.parent / "results"
    question = "SELECT count(*) AS n FROM runs"
    assert json.loads(asked(question, "--json", "--from", str(results))[1]) == [
        {"n": len(list(results.iterdir()))}
    ]


def test_an_empty_store_has_empty_tables(tmp_path):
    for name in tables.TABLES:
        assert tables.ask(StoreFolder(tmp_path / "none"), f"SELECT * FROM {name}").rows == []
