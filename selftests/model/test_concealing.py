"""Secrets by form: none goes out, also written twice, and no word of a healthy log is taken for one."""

import ast
import contextlib
import json
from pathlib import Path

import pytest
import yaml

import evmperf
from evmperf.boards import board as boards
from evmperf.boards.console.record import History, read
from evmperf.commands.cli.main import main
from evmperf.commands.cli.terminal import plain
from evmperf.measure.runs.hiding import Hiding
from evmperf.measure.runs.spool import Spool
from evmperf.model import concealing
from evmperf.model.concealing import Typed, conceal, concealed
from evmperf.model.errors import Kind, LabError
from evmperf.model.places import project
from evmperf.model.results import Failure, Result, Status
from evmperf.model.run import Run
from selftests.support import seeds

REAL = seeds.place("real")
KNOWN = yaml.safe_load((Path(__file__).parents[1] / "data/secretforms.yaml").read_text())
FORMS, BLOCKS, HEALTHY = (KNOWN[name] for name in ("forms", "blocks", "healthy"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("around", ["{}", "[   12.345678] app[312]: {} done", "x\n{}\r\ny", '"{}"'])
def test_no_secret_form_goes_out(form, around):
    for text in (around.format(form), json.dumps(around.format(form))):
        shown = concealed(text)
        assert FORMS[form] not in shown
        assert "characters)" in shown
        assert concealed(shown) == shown
    assert FORMS[form] not in str(LabError(f"no answer: {form}"))


@pytest.mark.parametrize("block", BLOCKS)
def test_no_line_of_a_secret_of_several_goes_out(block):
    for text in (block, f"before\n{block}\nbehind", json.dumps(block)):
        shown = concealed(text)
        assert not any(line in shown for line in BLOCKS[block].splitlines())
        assert concealed(shown) == shown


def test_no_sentence_of_evmperfs_own_holds_a_secret():
    folders = [Path(evmperf.__file__).parent, *(project(name) for name in ("pytest_evmperf", "strategies"))]
    taken, seen = [], 0
    for file in (file for folder in folders for file in folder.rglob("*.py") if file.stem != "concealing"):
        for node in ast.walk(ast.parse(file.read_text())):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts = [getattr(part, "value", None) for part in parts]
            text = "".join(text if isinstance(text, str) else "value" for text in texts)
            if " " in text and ":" in text:
                seen += 1
                taken += [text] if concealed(text) != text else []
    assert (taken, seen > 1000) == ([], True)


SECRET = "hunter2hunter2"
"""Of a board file; it says nothing by its form."""


@pytest.fixture
def known(tmp_path, monkeypatch, capsys):
    """A secret of a board file, and one of the environment."""
    monkeypatch.setattr(concealing, "_learned", set())
    monkeypatch.setenv("LAB_TOKEN", "of-the-environment")
    with contextlib.suppress(SystemExit):
        main(["--help"])
    drivers = {"SerialDriver": {}, "EvmShellDriver": {"username": "debian", "password": SECRET}}
    file = tmp_path / "board.yaml"
    file.write_text(json.dumps({"targets": {"main": {"drivers": drivers}}}))
    boards.load(file)
    return SECRET, "of-the-environment"


@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_a_known_secret_that_the_board_repeats_is_nowhere_in_console_log(pieces, known, tmp_path):
    said = f"login {known[0]}, again {known[0]} and {known[1]}; hunt".encode()
    history = History()
    history.open(tmp_path / "console.log")
    for at in range(0, len(said), pieces):
        history.feed(said[at : at + pieces], at + 1)
    history.feed(f"echo {known[0]}".encode(), 10_000, kind=">")
    history.close()
    kept = list(read(tmp_path / "console.log"))
    out = b"".join(record.data for record in kept if record.kind == "<")
    hidden = [b"*" * len(secret) for secret in known]
    assert out == b"login %b, again %b and %b; hunt" % (hidden[0], hidden[0], hidden[1])
    assert [record.data for record in kept if record.kind == ">"] == [b"echo " + hidden[0]]
    assert [record.mono_ns for record in kept[:-1]] == [at + 1 for at in range(0, len(said), pieces)]


def test_a_known_secret_is_in_no_file_of_a_run_and_on_no_terminal(known, tmp_path, capsys):
    run = Run("r", "b", "full")
    run.facts.image = f"image of {known[1]}"
    spool = Spool(tmp_path / "results", run)
    failure = Failure(Kind.TOOL, f"said {known[0]}")
    spool.append(Result("b", 1, "d", "c", {}, "full", Status.FAILED, failures=(failure,)))
    spool.keep_raw("out.txt", f"x {known[0]} y")
    files = [path for path in spool.folder.rglob("*") if path.is_file()]
    said = {path.name: path.read_text() for path in files}
    assert len(said) == 3
    with plain():
        print(f"table of {known[0]}")
    said["out"] = capsys.readouterr().out + str(LabError(f"board says {known[1]}"))
    assert [name for name, text in said.items() if any(secret in text for secret in known)] == []
    assert all("characters)" in text for text in said.values())


def test_the_name_of_the_user_and_a_short_word_are_no_secrets(monkeypatch):
    monkeypatch.setattr(concealing, "_learned", set())
    concealing.learn({"username": "debian-12", "password": "debian-12"})
    concealing.learn({"password": "secret", "token": ""})
    assert concealed("Linux 6.1.0-debian-12, secretly") == "Linux 6.1.0-debian-12, secretly"


def test_machine_id_and_e_mail_do_not_leave_the_lab():
    said = "machine-id: 0123456789abcdef0123456789abcdef, Alice <alice@mail.example>, getty@tty1.service"
    assert Hiding([]).text(said) == "machine-id(machine 1), Alice <(e-mail 1)>, getty@tty1.service"


@pytest.mark.parametrize("text", HEALTHY)
def test_a_healthy_line_stays(text):
    assert concealed(text) == text


def test_no_word_of_real_text_is_a_secret():
    folders = ("consoles*", "tools*", "ltp-ddt")
    files = [path for name in folders for path in REAL.glob(f"{name}/**/*") if path.is_file()]
    if not files:
        pytest.skip("no shared/real beside the checkout")
    taken = []
    for file in files:
        conceal(file.read_text(errors="replace"), lambda secret: taken.append(secret) or "")
    assert (taken, len(files) > 300) == ([], True)


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["image", "show", "http://alice:hunter2@127.0.0.1:9/i.wic"], {}),
        (["doctor", "am64x"], {"LG_COORDINATOR": "alice:hunter2@127.0.0.1:9", "LG_PLACE": "p"}),
        (["history", "--from", "history"], {"EVMPERF_HISTORY": "nope://alice:hunter2@bucket/x"}),
    ],
)
def test_no_command_repeats_a_password(words, variables, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with contextlib.suppress(SystemExit):
        assert main(words) != 0
    shown = capsys.readouterr()
    assert "(7 characters)" in shown.out + shown.err
    assert "hunter2" not in shown.out + shown.err


@pytest.mark.parametrize("pieces", [1, 2, 5, 100])
def test_the_echo_of_what_was_typed_is_hidden_until_the_line_ends(pieces):
    echo = b"ro rootroot\r\nroot@board:~# root"
    typed = Typed(b"root")
    shown = b"".join(typed.without(echo[at : at + pieces]) for at in range(0, len(echo), pieces))
    assert shown == b"** ********\r\nroot@board:~# root"
