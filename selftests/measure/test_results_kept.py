"""No command touches results.jsonl; selftests/runs/test_spool.py sees that the runner alone appends to it."""

import pytest

from evmperf.commands.cli import main as cli
from evmperf.measure.runs import spool
from selftests.support import spools


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
