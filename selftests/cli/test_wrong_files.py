"""Each command that reads a file takes any file in its place: bytes, a folder, nothing, broken YAML. What a
user meets is one sentence and a status that is not evmperf's own mistake.
"""

import random
from pathlib import Path

import pytest

from evmperf.commands.cli import main
from evmperf.model.exits import ExitStatus

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
    status = main.main(line.replace("FILE", file).split())
    told = capsys.readouterr()
    assert status != ExitStatus.INTERNAL, told.err
    assert "Traceback" not in told.err
    assert told.err or told.out
    if status == ExitStatus.USAGE:
        assert "evmperf: " in told.err
        assert len(told.err) < 2000
