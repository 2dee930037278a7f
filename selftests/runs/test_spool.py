"""The spool: what was appended comes back, and what a crash, a full disk or another process leaves costs no
more than itself.
"""

import fcntl
import json
import logging
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import MappingProxyType

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evmperf.measure.runs import spool as spools
from evmperf.measure.runs.spool import (
    RECORDS,
    Spool,
    append_records,
    is_live,
    leave_out,
    line,
    new_run_id,
    read_records,
    read_results,
    read_run,
)
from evmperf.model import limits
from evmperf.model.errors import Kind, LabError, UsageError
from evmperf.model.facts import Facts
from evmperf.model.records import BootMark, BootRecord
from evmperf.model.results import HISTORY, SCHEMA, Failure, Result, Sample, Status
from evmperf.model.run import Run
from selftests.support.spools import RECORDED, a_case

words = st.text(max_size=30)
numbers = st.floats(allow_nan=False, allow_infinity=False)
real = st.floats(-limits.REAL, limits.REAL)
count = st.integers(0, 1 << 62)
whole = st.integers(-(1 << 63), (1 << 64) - 1)
params = st.dictionaries(words, st.one_of(words, whole, numbers), max_size=4)
samples = st.builds(
    Sample, metric=words, value=real, unit=words, repetition=st.integers(0, 20), time_ns=count
)
failures = st.builds(
    Failure, kind=st.sampled_from(Kind), message=words, step=words, refused=st.booleans(), raw=words
)
results = st.builds(
    Result,
    benchmark=words,
    version=st.integers(1, 9),
    driver=words,
    case=words,
    params=params,
    profile=words,
    status=st.sampled_from(Status),
    samples=st.lists(samples, max_size=3).map(tuple),
    failures=st.lists(failures, max_size=3).map(tuple),
    tools=st.dictionaries(words, words, max_size=2),
    conditions=params,
    raw=st.lists(words, max_size=2).map(tuple),
    started_ns=count,
    duration_s=real,
    tool_s=real,
)
MEASURED = a_case(samples=tuple(Sample("rate", 12.5 + n, "MB/s", n, 10 + n) for n in range(2)))


def a_boot(goal):
    return BootRecord(
        goal=goal, started_ns=1, duration_s=2.5, marks=(BootMark("prompt", 1, 2, 0.002, "äö\r\n"),)
    )


def _said(value):
    """A record without what is empty."""
    if isinstance(value, dict):
        said = {key: _said(item) for key, item in value.items()}
        return {key: item for key, item in said.items() if item not in ("", None, [], {}, 0, False)}
    return [_said(item) for item in value] if isinstance(value, list | tuple) else value


@pytest.fixture
def spool(tmp_path):
    return Spool(tmp_path, Run("virtual-evm-1", "virtual-evm", "quick", facts=Facts(kernel="6.12")))


@pytest.fixture(scope="module")
def three_lines(tmp_path_factory):
    """A folder whose results.jsonl may be rewritten, and its three whole lines."""
    spool = Spool(tmp_path_factory.mktemp("spool"), Run("r", "b", "quick"))
    for number in range(3):
        spool.append(a_boot(f"shell {number}"))
    return spool.folder, (spool.folder / "results.jsonl").read_bytes().splitlines(keepends=True)


def goals(folder):
    return [record.goal for record in read_records(folder)]


def read(folder):
    """The goals of the boots that can be read, and what is said of the others."""
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    leave_out.cache_clear()
    logging.getLogger("evmperf.measure.runs.spool").addHandler(handler)
    found = goals(folder)
    logging.getLogger("evmperf.measure.runs.spool").removeHandler(handler)
    return found, "\n".join(said)


@settings(max_examples=20)
@given(st.lists(results, max_size=3, unique_by=lambda result: (result.benchmark, result.case)))
def test_results_come_back_as_they_were(tmp_path_factory, kept):
    spool = Spool(tmp_path_factory.mktemp("spool"), Run("r", "b", "quick"))
    for result in kept:
        spool.append(result)
    assert read_results(spool.folder) == kept


def test_a_run_comes_back_as_it_was(spool):
    first, second = new_run_id("b"), new_run_id("b")
    assert first[:-5] <= second[:-5], "run ids sort by time"
    assert first != second
    name = spool.keep_raw("emmc_ext4/4k/write.fio.json", "{}\r\n")
    assert (spool.folder / name).read_bytes() == b"{}\r\n"
    spool.run.outcome = "All measured."
    spool.run.facts.cards = [{"name": "x"}]
    spool.save()
    assert read_run(spool.folder) == spool.run
    assert not list(spool.folder.glob("*.new"))


def test_a_field_of_a_later_evmperf_is_ignored_and_another_kind_named(spool, caplog):
    def write(**fields):
        with (spool.folder / RECORDS).open("a") as file:
            file.write(json.dumps(fields) + "\n")

    write(**json.loads(line(a_boot("uboot"))), moon=1)
    assert list(read_records(spool.folder)) == [a_boot("uboot")]
    assert read_results(spool.folder) == []
    write(schema=SCHEMA, record="weather", sun=True)
    assert list(read_records(spool.folder)) == [a_boot("uboot")]
    assert "line 2: is damaged: Invalid value 'weather'" in caplog.text


def test_half_a_character_loses_no_more_than_itself(spool):
    spool.append(BootRecord(goal="a\ud800b", started_ns=1, duration_s=1.0, marks=()))
    assert goals(spool.folder) == ["a?b"]


def test_facts_of_any_type_are_kept(spool):
    spool.run.facts.other |= {"path": Path("/x"), "proxy": MappingProxyType({"a": 1})}
    spool.save()
    facts = read_run(spool.folder).facts.other
    assert (facts["path"], facts["proxy"]) == ("/x", {"a": 1})


def test_a_spool_of_schema_1_is_read_whole():
    assert list(HISTORY) == list(range(1, SCHEMA + 1)), "every version has its story"
    plain = [json.loads(text) for text in (RECORDED / RECORDS).read_text().splitlines()]
    assert plain[0]["schema"] == 1
    read = list(read_records(RECORDED))
    assert len(read) == len(plain)
    for then, now in zip(plain, read, strict=True):
        del then["schema"]
        assert _said(msgspec.to_builtins(now)) == _said(then)
    assert read_run(RECORDED).outcome == json.loads((RECORDED / "run.json").read_text())["outcome"]


@given(st.data())
def test_a_last_line_cut_at_any_byte_loses_only_itself(three_lines, data):
    folder, lines = three_lines
    cut = data.draw(st.integers(0, len(lines[2]) - 1))
    (folder / "results.jsonl").write_bytes(b"".join(lines[:2]) + lines[2][:cut])
    assert goals(folder) == ["shell 0", "shell 1"]


@given(st.integers(0, 1), st.sampled_from(["cut", b"\x00", b"\xff", b"\x1f"]), st.data())
def test_a_line_that_is_cut_or_has_a_dead_byte_is_left_out(three_lines, number, damage, data):
    folder, lines = three_lines
    at = data.draw(st.integers(0, len(lines[number]) - 2))
    damaged = list(lines)
    damaged[number] = lines[number][:at] + (b"\n" if damage == "cut" else damage + lines[number][at + 1 :])
    (folder / "results.jsonl").write_bytes(b"".join(damaged))
    found, said = read(folder)
    assert found == [f"shell {n}" for n in range(3) if n != number]
    assert f"results.jsonl line {number + 1}: is damaged" in said


@pytest.mark.parametrize("line", [b"\0" * 200, b"12", b"[]", b"null", b'{"record": "boot"}'])
def test_a_line_that_is_no_record_is_named(three_lines, line):
    folder, lines = three_lines
    (folder / "results.jsonl").write_bytes(lines[0] + line + b"\n" + lines[2])
    found, said = read(folder)
    assert found == ["shell 0", "shell 2"]
    assert "line 2" in said


@pytest.mark.parametrize("schema", [SCHEMA + 1, 99])
def test_a_later_schema_is_refused_with_what_to_do(three_lines, spool, schema):
    folder, lines = three_lines
    later = json.dumps({"schema": schema, "record": "result"}).encode() + b"\n"
    (folder / "results.jsonl").write_bytes(lines[0] + later)
    with pytest.raises(UsageError, match=f"has schema {schema}.*update evmperf"):
        list(read_records(folder))
    (spool.folder / "run.json").write_text(json.dumps({"schema": schema, "id": "x"}))
    with pytest.raises(UsageError, match=f"has schema {schema}.*update evmperf"):
        read_run(spool.folder)


DAMAGED = [b"", b"{", b"\xff\xfe\xff", b"\0\0\0\0\0"]
HUGE = b"larger"
WITHOUT_SCHEMA = [b'{"schema": %s}' % schema for schema in (b"null", b"0", b"-1", b'"1"')]


@pytest.mark.parametrize("content", [*DAMAGED, *WITHOUT_SCHEMA, HUGE, None])
def test_a_run_file_that_is_not_ours_is_named(spool, content):
    file = spool.folder / "run.json"
    file.write_bytes(content or b"")
    if content == HUGE:
        os.truncate(file, limits.RUN_BYTES + 1)
    if content is None:
        file.unlink()
    said = {HUGE: r"run\.json: is damaged: larger than 16 MiB", None: "holds no run"}
    said |= dict.fromkeys(WITHOUT_SCHEMA, "states no schema")
    with pytest.raises(UsageError, match=said.get(content, r"run\.json")):
        read_run(spool.folder)


@pytest.mark.parametrize("name", ["run.json", RECORDS])
def test_a_pipe_in_the_place_of_a_file_is_named_and_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(UsageError, match=f"{name}: is damaged: no regular file"):
        read_run(tmp_path) if name == "run.json" else list(read_records(tmp_path))
    assert not is_live(tmp_path)


def test_a_folder_that_cannot_be_made_is_a_lab_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match=r"Not a directory.*--results"):
        Spool(tmp_path / "file", Run("r", "b", "quick"))


def test_a_run_is_live_while_its_process_holds_it(spool):
    assert not is_live(spool.folder)
    spool.hold()
    assert is_live(spool.folder)
    spool.release()
    assert not is_live(spool.folder)
    assert not is_live(spool.folder / "nothing")


def test_nothing_but_the_spool_opens_results_for_writing():
    """`spool.append` adds lines; no module has another way to the file."""
    root = Path(__file__).parents[2]
    ways = re.compile(r"write_whole\(|write_(?:text|bytes)\(|\.open\(\s*[\"'](?!r)|os\.(?:replace|truncate)")
    found = {
        str(file.relative_to(root))
        for place in ("evmperf", "pytest_evmperf", "strategies", "virtual-evm")
        for file in (root / place).rglob("*.py")
        for line in file.read_text().splitlines()
        if ways.search(line) and re.search(r"\bRECORDS\b|results\.jsonl", line)
    }
    assert found == {"evmperf/measure/runs/spool.py"}


def test_what_failed_and_was_tried_again_is_one_whole_row(spool):
    """As by pytest-rerunfailures: nothing of the first try is lost, and its row counts once."""
    lost = replace(MEASURED, status=Status.PARTIAL, failures=(Failure(Kind.TOOL, "no answer", "read"),))
    other = replace(MEASURED, case="8k")
    for result in (lost, other, MEASURED):
        spool.append(result)
    apart, row = read_results(spool.folder)
    assert apart == other
    assert (row.case, row.status) == (MEASURED.case, Status.MEASURED)
    assert [sample.value for sample in row.samples] == [s.value for s in (*lost.samples, *MEASURED.samples)]
    assert len({(sample.metric, sample.repetition) for sample in row.samples}) == len(row.samples)
    assert row.failures == lost.failures


def test_what_was_measured_and_then_failed_is_there_in_part(spool):
    spool.append(MEASURED)
    spool.append(replace(MEASURED, status=Status.FAILED, samples=()))
    (row,) = read_results(spool.folder)
    assert (row.status, row.samples) == (Status.PARTIAL, MEASURED.samples)


@pytest.mark.parametrize("write", ["append", "save", "keep_raw"])
@pytest.mark.parametrize("how", ["renamed", "parent renamed", "deleted", "replaced", "records deleted"])
def test_a_folder_that_is_gone_ends_the_session_and_is_not_made_anew(tmp_path, how, write):
    results = tmp_path / "results"
    spool = Spool(results, Run("r", "b", "quick"))
    spool.hold()
    spool.append(a_boot("first"))
    away = tmp_path / "away" if how == "parent renamed" else results / "r-old"
    if how == "parent renamed":
        results.rename(away)
        away /= "r"
    elif how == "deleted":
        shutil.rmtree(spool.folder)
    elif how == "records deleted":
        (spool.folder / RECORDS).unlink()
    else:
        spool.folder.rename(away)
    if how == "replaced":
        Spool(results, Run("r", "b", "quick"))
    moved = "deleted" not in how
    words = f"was renamed to {away}" if moved else "records were deleted"
    with pytest.raises(LabError, match=words):
        {
            "append": lambda: spool.append(a_boot("second")),
            "save": spool.save,
            "keep_raw": lambda: spool.keep_raw("a/out.txt", "said"),
        }[write]()
    assert not (spool.folder / RECORDS).exists()
    if moved:
        assert goals(away) == (["first", "second"] if write == "append" else ["first"])
        assert (away / "raw/a/out.txt").exists() == (write == "keep_raw")
    spool.release()


# Torn files


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Spool(tmp_path_factory.mktemp("spool"), Run("r", "b", "quick")).folder


@given(st.data())
def test_appending_to_a_torn_line_destroys_nothing(folder, data):
    first, torn = line(a_boot("first")), line(a_boot("torn"))
    cut = data.draw(st.integers(0, len(torn) - 1))
    (folder / RECORDS).write_bytes(first + torn[:cut])
    append_records(folder, [a_boot("last")])
    # Nothing but the line's end was missing: then it is whole.
    whole = ["torn"] if cut == len(torn) - 1 else []
    assert goals(folder) == ["first", *whole, "last"]


def test_a_file_without_any_end_of_line_is_begun_anew(folder):
    (folder / RECORDS).write_bytes(b"\0" * 5000)
    append_records(folder, [a_boot("a")])
    assert goals(folder) == ["a"]


def test_a_write_that_is_cut_short_is_an_error_and_leaves_nothing(folder):
    (folder / RECORDS).write_bytes(line(a_boot("first")))
    size = (folder / RECORDS).stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
        with pytest.raises(LabError, match="No space left"):
            append_records(folder, [a_boot("second")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (folder / RECORDS).stat().st_size == size


APPENDER = """
import sys
from pathlib import Path
from evmperf.model.records import BootRecord
from evmperf.measure.runs.spool import append_records
for number in range(50):
    boot = BootRecord(goal=f"{sys.argv[2]} {number}", started_ns=1, duration_s=2.5, marks=())
    append_records(Path(sys.argv[1]), [boot])
"""


def test_two_processes_append_in_turn(folder):
    (folder / RECORDS).write_bytes(line(a_boot("first")) + b'{"schema"')
    words = [sys.executable, "-c", APPENDER, folder]
    processes = [subprocess.Popen([*words, name]) for name in "ab"]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert sorted(goals(folder)) == sorted(
        ["first", *(f"{name} {number}" for name in "ab" for number in range(50))]
    )


def test_who_cannot_have_the_lock_says_so(folder, monkeypatch):
    monkeypatch.setattr(spools, "_ALONE_S", 0.0)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(LabError, match="cannot be written"):
            append_records(folder, [a_boot("a")])
    finally:
        os.close(handle)


def test_a_file_of_nothing_but_damage_is_named_in_a_few_lines(folder, caplog):
    leave_out.cache_clear()
    (folder / RECORDS).write_bytes(b"{\n" * 1000 + line(a_boot("a")) + b"[" * 100_000 + b"\n")
    assert goals(folder) == ["a"]
    assert len(caplog.records) == 6
    assert "996 more lines" in caplog.records[-1].getMessage()
    assert goals(folder) == ["a"]
    assert len(caplog.records) == 6  # said once


def test_who_asks_whether_a_run_is_live_does_not_keep_it_from_being_held(folder):
    one = Spool(folder, Run("r", "b", "quick"))
    (one.folder / RECORDS).touch()
    asking = (one.folder / RECORDS).open("rb")
    fcntl.flock(asking, fcntl.LOCK_SH)  # as is_live does, for an instant
    holding = threading.Thread(target=one.hold)
    holding.start()
    holding.join(0.2)
    asking.close()
    holding.join(10)
    assert is_live(one.folder)
    one.release()
