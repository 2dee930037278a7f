"""Wrong calls and files with mistakes: what is refused is named in words, and nothing is written."""

import shlex
from pathlib import Path

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.commands.cli.main import main
from evmperf.model.exits import ExitStatus
from selftests.support import runs

TABLE, ANY = yaml.safe_load_all(Path(__file__).with_name("refused.yaml").read_text())
ROWS = [(about, given, said) for about, group in TABLE.items() for given, *said in group["rows"]]


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nights")
    runs.history(folder, nights=6)
    return folder


@pytest.fixture
def folder(tmp_path, nights, monkeypatch):
    """The folder in which the call is made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(nights)
    return tmp_path


def text_of(given, base):
    """The text of a file, by what a row gives and what it changes."""
    whole = (boards.ENV_DIR / base).read_text() if isinstance(base, str) else yaml.safe_dump(base)
    if isinstance(given, list):
        right, wrong = given
        assert right in whole
        return whole.replace(right, wrong)
    if isinstance(given, dict):
        data = yaml.safe_load(whole)
        for way, value in given.items():
            *places, last = way.split(".")
            place = data
            for key in places:
                place = place[key]
            place[last] = value
        return yaml.safe_dump(data, sort_keys=False)
    return given


@pytest.mark.parametrize(("about", "given", "said"), ROWS, ids=[about for about, *_ in ROWS])
def test_what_is_refused_is_named_and_leaves_nothing(*, about, given, said, folder, monkeypatch, capsys):
    group, call = TABLE[about], TABLE[about]["call"]
    files, named = dict(group.get("files", {})), group.get("file", "")
    if named:
        files[named] = text_of(given, group.get("of"))
    else:
        call = call.replace("{}", given)
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "latin-1")
    for name, value in group.get("variables", {}).items():
        monkeypatch.setenv(name, value.replace("{}", str(given)))
    try:
        status = main(shlex.split(call))
    except SystemExit as end:
        status = end.code
    told = capsys.readouterr().err
    assert status == group.get("status", ExitStatus.USAGE), told
    assert len(told) < 2000
    for words in ("" if "unnamed" in group else named, *said):
        assert words in told
    assert group.get("secret", "Traceback") not in told
    assert {path.name for path in folder.iterdir()} == {"results", *(name.split("/")[0] for name in files)}


@pytest.mark.parametrize("content", ANY["files"])
@pytest.mark.parametrize("line", ANY["lines"])
def test_any_file_in_its_place_is_answered_with_a_sentence(*, line, content, folder, monkeypatch, capsys):
    """A user meets one sentence, and a status that is not evmperf's own mistake."""
    for name, value in ANY["variables"].items():
        monkeypatch.setenv(name, value)
    file = folder / "given"
    if ANY["files"][content] is None:
        file.mkdir()
    else:
        file.write_text(ANY["files"][content], "latin-1")
    status = main(line.replace("FILE", file.name).split())
    told = capsys.readouterr()
    assert status != ExitStatus.INTERNAL, told.err
    assert "Traceback" not in told.err
    assert told.err or told.out
    if status == ExitStatus.USAGE:
        assert "evmperf: " in told.err
        assert len(told.err) < 2000
