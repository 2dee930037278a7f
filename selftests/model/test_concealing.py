"""Secrets by form: none goes out, also written twice, and no word of a healthy log is taken for one."""

import contextlib
import json

import pytest

from evmperf.commands.cli.main import main
from evmperf.model.concealing import Typed, conceal, concealed
from evmperf.model.errors import LabError
from selftests.support import seeds
from selftests.support.secretforms import FORMS, HEALTHY

REAL = seeds.place("real")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("around", ["{}", "[   12.345678] app[312]: {} done", "x\n{}\r\ny", '"{}"'])
def test_no_secret_form_goes_out(form, around):
    for text in (around.format(form), json.dumps(around.format(form))):
        shown = concealed(text)
        assert FORMS[form] not in shown
        assert "characters)" in shown
        assert concealed(shown) == shown
    assert FORMS[form] not in str(LabError(f"no answer: {form}"))


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
        (["runs", "--from", "history"], {"EVMPERF_HISTORY": "nope://alice:hunter2@bucket/x"}),
        (["image", "show", "12.00"], {"EVMPERF_RELEASES": "http://alice:hunter2@lab/releases.yaml"}),
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
