"""Wrong calls and files with mistakes: what is refused is named in words, and nothing is written."""

import random
import shlex
from pathlib import Path

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.commands.cli.main import main
from evmperf.model.exits import ExitStatus
from selftests.support import runs

TABLE = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text())
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


LINES = (
    "ab --resume FILE",
    "ab FILE -k emmc --a image:FILE --b image:FILE",
    "board check FILE",
    "doctor --replay FILE",
    "check FILE",
    "compare FILE FILE",
    "doctor FILE",
    "export FILE --csv -",
    "gitlab note FILE",
    "gitlab pipeline FILE",
    "guide --release 11.01 --from FILE",
    "image install virtual.yaml FILE",
    "import-guide FILE --release 11.01 --board am64x",
    "lava device FILE",
    "lava import FILE",
    "lava render FILE",
    "lava submit FILE",
    "night FILE",
    "push FILE",
    "show FILE",
    "site -o pages --results FILE",
    "why FILE",
)
FILES = {
    "bytes": random.Random(1).randbytes(300),
    "UTF-16": "boards: [am64x]\n".encode("utf-16"),
    "nothing": b"",
    "half a list": b"[1, 2",
    "a list": b"- a\n",
    "a word": b"am64x\n",
    "a folder": None,
}


@pytest.fixture(params=FILES)
def file(request, tmp_path, monkeypatch):
    """A file of that content."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CI_MERGE_REQUEST_IID", "1")
    monkeypatch.setenv("CI_API_V4_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CI_PROJECT_ID", "1")
    monkeypatch.setenv("EVMPERF_LAVA_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("EVMPERF_GITLAB_TOKEN", "token")
    content = FILES[request.param]
    if content is None:
        Path("given").mkdir()
    else:
        Path("given").write_bytes(content)
    return "given"


@pytest.mark.parametrize("line", LINES)
def test_any_file_in_its_place_is_answered_with_a_sentence(line, file, capsys):
    status = main(line.replace("FILE", file).split())
    told = capsys.readouterr()
    assert status != ExitStatus.INTERNAL, told.err
    assert "Traceback" not in told.err
    assert told.err or told.out
    if status == ExitStatus.USAGE:
        assert "evmperf: " in told.err
        assert len(told.err) < 2000
