"""Nothing rewrites results.jsonl: the runner appends to it, and no command touches it afterwards."""

import re

import pytest

from evmperf.commands.cli import main as cli
from evmperf.measure.runs import spool
from selftests.support import spools
from selftests.support.seeds import ROOT

OWN = ["evmperf", "pytest_evmperf", "strategies", "virtual-evm"]
NAMES = re.compile(r"\bRECORDS\b|results\.jsonl")
TOUCHES = re.compile(
    r"write_(text|bytes|whole)\(|_append\(|\.open\(|os\.|replace|rename|truncate|unlink|copy"
)
HARMLESS = re.compile(r"""\.open\(("rb"|"ab")\)|_append\(folder / RECORDS, records\)|\.stat\(\)""")


def test_who_opens_results_jsonl_reads_or_appends():
    files = [file for place in OWN for file in (ROOT / place).rglob("*.py")]
    lines = [line for file in files for line in file.read_text().splitlines() if NAMES.search(line)]
    found = [line for line in lines if TOUCHES.search(line)]
    assert len(found) >= 3, "the file is opened nowhere: this test looks for the wrong words"
    assert [line for line in found if not HARMLESS.search(line)] == []


@pytest.mark.parametrize(
    "words",
    [
        ["show", "RUN", "--report"],
        ["why", "last"],
        ["check", "last"],
        ["site", "-o", "SITE"],
        ["doctor", "--replay", "LOG"],
    ],
    ids=" ".join,
)
def test_a_command_leaves_results_as_they_are(tmp_path, words, monkeypatch, capsys):
    results = tmp_path / "results"
    run = spools.recorded(results)
    log = tmp_path / "console.log"
    log.write_text("U-Boot 2025.01\n")
    file = run / spool.RECORDS
    before = (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ino)
    file.chmod(0o444)
    monkeypatch.chdir(tmp_path)
    names = {"RUN": str(run), "SITE": str(tmp_path / "site"), "LOG": str(log)}
    status = cli.main([names.get(word, word) for word in words])
    capsys.readouterr()
    assert status is not None
    assert (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ino) == before
