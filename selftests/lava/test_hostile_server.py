"""Servers that are not LAVA's, or a bad one: each answer is one sentence, within a size and a time. Logs that
somebody wrote to get at the host that imports them.
"""

import functools
import gzip
import itertools
import json
import time
from pathlib import Path

import pytest
import yaml

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.commands.cli import main as cli
from evmperf.commands.lava import joblog
from evmperf.model import limits
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from selftests.support import hostile, web
from selftests.support.lava_jobs import CATALOGUE, answered

HEADER = "schema=1&kind=native&board_file=virtual&profile=quick&benchmarks=emmc_vfat"
JOB = {
    "id": 1,
    "state": "Finished",
    "health": "Complete",
    "actual_device": "virtual-01",
    "original_definition": f"metadata: {{evmperf: '{HEADER}'}}",
    "definition": "",
}
GOOD = {"jobs/1/": JOB, "jobs/": {"job_ids": ["1"]}}
"""What LAVA 2023.01 answers, by path."""

ANSWERS = yaml.safe_load(Path(__file__).with_name("answers.yaml").read_text())
NOT_LAVA = {name: text.encode("latin-1") for name, text in ANSWERS["bodies"].items()}
NOT_LAVA |= {"depth": b"[" * 99_999, "depth of an object": b'{"a":' * 99_999}
VALUES = (*ANSWERS["values"], "x" * 100_000, "a: [" * 9999)


@pytest.fixture
def lava(answers, tmp_path):
    """A server of one good job, whose answers can be replaced."""
    (tmp_path / "job.yaml").write_text("\njob_name: ours\n")
    answers |= {path: body(json.dumps(data).encode()) for path, data in GOOD.items()}
    return answers


def ended(capsys, *words):
    """The status of a command, and what it said: lines of plain text."""
    status = cli.main(["lava", *words])
    said = "".join(capsys.readouterr())
    assert said.count("\n") < 10
    assert said.replace("\n", "").isprintable()
    return status, said


def body(data, status=200, **headers):
    return lambda handler: handler.say(status, data, **headers)


COMMANDS = {"jobs/": ("submit", "job.yaml"), "jobs/1/": ("wait", "1"), "jobs/1/logs/": ("import", "1")}


@pytest.mark.parametrize("path", COMMANDS)
@pytest.mark.parametrize("data", NOT_LAVA.values(), ids=NOT_LAVA)
def test_what_is_not_lavas_answer_is_one_sentence(lava, capsys, path, data):
    lava[path] = body(data)
    status, said = ended(capsys, *COMMANDS[path])
    assert status in (ExitStatus.LAB_BROKEN, ExitStatus.USAGE)
    assert said.count("\n") == 1, said
    assert "job 1" in said or "jobs" in said


def changed(data, place, value):
    """A copy of the answer with another value at a path of keys."""
    copy = json.loads(json.dumps(data))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return json.dumps(copy).encode()


def places(data):
    """Every path of keys in an answer."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        yield (key,)
        yield from ((key, *more) for more in places(value))


@pytest.mark.parametrize(("path", "answer"), GOOD.items())
def test_a_field_of_another_kind_is_one_sentence_or_harmless(lava, capsys, path, answer):
    for place, value in itertools.product(places(answer), VALUES):
        lava[path] = body(changed(answer, place, value))
        for command in (("wait", "1", "--timeout", "0"), ("import", "1"), ("submit", "job.yaml")):
            status, said = ended(capsys, *command)
            assert status in list(ExitStatus), (place, value)
            assert said


@pytest.mark.parametrize(
    "metadata",
    ["", "3", "[1]", "{}", "{evmperf: 3}", "{evmperf: [a]}", "{evmperf: !!binary YT1i}", "[" * 9999],
)
def test_a_definition_that_is_none_is_named(lava, capsys, metadata):
    lava["jobs/1/"] = body(json.dumps({**JOB, "original_definition": f"metadata: {metadata}"}).encode())
    for word in ("wait", "import"):
        status, said = ended(capsys, word, "1")
        assert status == ExitStatus.USAGE
        assert "job 1 was not made by evmperf" in said


def flood(status, head=b"", **headers):
    """An answer without end; `sent` counts its bytes."""

    def answer(handler):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.close_connection = True
        handler.wfile.write(head)
        piece = b"x" * limits.MIB
        while answer.sent < 3000 * limits.MIB:
            handler.wfile.write(piece)
            answer.sent += len(piece)

    answer.sent = 0
    return answer


@pytest.mark.parametrize(
    ("path", "status", "headers"),
    [
        *((path, 200, {}) for path in COMMANDS),
        ("jobs/1/", 302, {"Location": "/"}),
        ("jobs/1/", 500, {}),
        ("jobs/1/", 503, {"Retry_After": "1"}),
    ],
)
def test_a_body_without_end_is_cut(lava, capsys, path, status, headers):
    lava[path] = answer = flood(status, b'{"state": "', **headers)
    code, said = ended(capsys, *COMMANDS[path], *(["--timeout", "5"] if path == "jobs/1/" else []))
    assert code == ExitStatus.LAB_BROKEN
    assert ("MiB" if status == 200 else str(status)) in said
    assert answer.sent < 1000 * limits.MIB


def test_a_body_that_unpacks_without_end_is_cut(lava, capsys):
    packed = gzip.compress(bytes(64 * limits.MIB), 9) * 40
    lava["jobs/1/"] = body(packed, Content_Encoding="gzip")
    status, said = ended(capsys, "wait", "1")
    assert status == ExitStatus.LAB_BROKEN
    assert "64 MiB" in said


def raw(text, seconds=60.0):
    """An answer of these bytes, and then a byte now and then for so long."""
    return functools.partial(web.trickle, head=text.encode("latin-1"), seconds=seconds)


OK = "HTTP/1.1 200 OK\r\n"
HTTP = {name: raw(text, 0) for name, text in ANSWERS["http"].items()}
HTTP |= {name: raw(text) for name, text in ANSWERS["slow"].items()}
HTTP |= {"many headers": raw(OK + "X: y\r\n" * 5000, 0), "a long header": raw(f"{OK}X: {'y' * 100_000}", 0)}
HTTP |= {"busy for long": body(b"", 503, Retry_After="3600"), "silence": lambda handler: time.sleep(60)}


@pytest.mark.parametrize("answer", HTTP.values(), ids=HTTP)
def test_what_is_not_http_or_slower_than_the_timeout_is_one_sentence(lava, capsys, answer):
    lava["jobs/1/"] = answer
    begun = time.monotonic()
    status, said = ended(capsys, "wait", "1", "--timeout", "1")
    assert status == ExitStatus.LAB_BROKEN
    assert said.count("\n") == 1
    assert "http://127.0.0.1" in said
    assert time.monotonic() - begun < 20


def test_a_server_that_is_busy_is_asked_again(lava, capsys):
    asked = []

    def answer(handler):
        asked.append(handler)
        handler.say(503 if len(asked) == 1 else 200, json.dumps(JOB).encode(), Retry_After="1")

    lava["jobs/1/"] = answer
    assert "1 cases passed" not in ended(capsys, "wait", "1")[1]
    assert len(asked) == 2


BOARD = boards.load(boards.find("virtual"))


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder to import in, below a home."""
    known = {**catalogue.benchmarks(), **CATALOGUE}
    monkeypatch.setattr(catalogue, "benchmarks", lambda: known)
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    (home / ".ssh").mkdir()
    (home / ".bashrc").write_text("ours")
    (home / ".ssh/authorized_keys").write_text("ours")
    monkeypatch.chdir(home / "work")
    return home


def read(text):
    Path("job.log").write_text(text, encoding="utf-8")
    return cli.main(["lava", "import", "job.log"])


@pytest.mark.parametrize("name", hostile.ESCAPES[:3])  # measure/test_hostile_board.py has all
def test_a_log_writes_no_file_of_the_importer(desk, name):
    evil = [hostile.member("number", b"12\n"), hostile.member(name.replace("/home", str(desk)))]
    assert read(answered(BOARD, hostile.answer(hostile.tar(*evil)))) == ExitStatus.FAILED
    assert (desk / ".bashrc").read_text() == "ours"
    assert (desk / ".ssh/authorized_keys").read_text() == "ours"
    assert {path.name for path in desk.iterdir()} == {"work", ".ssh", ".bashrc"}
    assert {path.name for path in (desk / "work").iterdir()} == {"job.log", "results"}


@pytest.mark.parametrize("name", ["/home/evil.yaml", "../evil.yaml", "results/../../evil"])
def test_a_log_names_no_path_as_its_board_file(desk, name, capsys):
    (desk / "evil.yaml").write_text((boards.ENV_DIR / "virtual.yaml").read_text())
    fine = hostile.answer(hostile.tar(hostile.member("number", b"12\n")))
    assert read(answered(BOARD, fine, board_file=name.replace("/home", str(desk)))) == ExitStatus.USAGE
    assert "job.log" in capsys.readouterr().err


def test_a_bomb_in_a_log_is_refused_and_kept_packed(desk):
    bomb = hostile.answer(hostile.tar(hostile.member("number", bytes(2 * limits.STEP_BYTES))))
    assert read(answered(BOARD, bomb)) == ExitStatus.FAILED
    assert sum(p.stat().st_size for p in (desk / "work").rglob("*")) < 10 * limits.MIB


ENTRY = {"dt": "2026-11-20T22:00:00", "lvl": "target", "msg": "x"}


def test_a_long_line_is_shortened_and_says_so():
    line = json.dumps({**ENTRY, "msg": "x" * (3 * limits.LAVA_LINE_CHARS)})
    (entry,) = joblog.parse(f"- {line}\n", "a log")
    assert len(entry.text) < limits.LAVA_LINE_CHARS + 100
    assert f"({2 * limits.LAVA_LINE_CHARS} more characters)" in entry.text


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        "- " + "[" * 100_000,
        "- " + "? " * 100_000,
        "- {dt: &a [x, x], lvl: [*a, *a], msg: x}",
        '- {"dt": 1, "lvl": "target", "msg": ""}',
        "- " + "{x: " * (limits.LAVA_LINE_CHARS // 2),
        "- " + json.dumps({**ENTRY, "msg": "\ud800"}),
        "- " + json.dumps({**ENTRY, "lvl": "results", "msg": {"error_msg": "\udfff"}}),
    ],
    ids=["deep", "deep yaml", "deep, no JSON", "not text", "no time", "long yaml", "half", "half within"],
)
def test_a_line_that_is_made_to_break_the_reader_is_named(line):
    with pytest.raises(UsageError, match="a log line 2"):
        joblog.parse(f"- {json.dumps(ENTRY)}\n{line}\n", "a log")


def test_a_log_without_end_is_not_read_at_all(desk, monkeypatch, capsys):
    monkeypatch.setattr(limits, "LAVA_LOG_BYTES", limits.MIB)
    assert read("x" * (limits.MIB + 1)) == ExitStatus.USAGE
    assert "larger than 1 MiB" in capsys.readouterr().err
