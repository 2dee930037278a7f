"""A run of absurd numbers is named and left out; commands on its folder do the rest."""

import json

import pytest

from evmperf.commands.cli.main import main
from evmperf.measure.runs import spool
from evmperf.model.exits import ExitStatus
from selftests.support import runs

ABSURD = {
    "when": ("run.json", ["started_ns"], 10**30),
    "before": ("run.json", ["started_ns"], -(10**18)),
    "after": ("run.json", ["ended_ns"], 9 * 10**18),
    "value": ("results.jsonl", ["samples", 0, "value"], 1e308),
    "tiny": ("results.jsonl", ["samples", 0, "value"], 5e-324),
    "time": ("results.jsonl", ["samples", 0, "time_ns"], 10**30),
    "error": ("results.jsonl", ["samples", 0, "error"], -1e308),
    "took": ("results.jsonl", ["duration_s"], 1e308),
}
COMMANDS = """
history --results {results}
history am64xx-hsevm --results {results}
history am64xx-hsevm emmc_ext4 --results {results}
check am64xx-hsevm-0003 --against last:3 --results {results}
compare am64xx-hsevm-0001 am64xx-hsevm-0003 --results {results}
site -o {out}/site --results {results}
guide --release newest --from {results} -o {out}/guide.rst
export --from {results} --parquet {out}/x
export --from {results} --openmetrics {out}/x
export --from {results} --junit {out}/x
export --from {results} --csv {out}/x
history --from history
"""
READERS = ("guide", "export")
"""Commands that read the records of every run."""
JUDGING = ("site", "history am64xx-hsevm")
"""Commands that read no more of them than judging does."""


@pytest.fixture(params=ABSURD)
def absurd(request, tmp_path):
    """A folder of four nights, the second with one absurd number; and the file that has it."""
    runs.history(tmp_path / "results", nights=4)
    name, way, value = ABSURD[request.param]
    file = tmp_path / "results/am64xx-hsevm-0001" / name
    first, _, rest = (file.read_text(), "", "") if name == "run.json" else file.read_text().partition("\n")
    said = json.loads(first)
    part = said
    for key in way[:-1]:
        part = part[key]
    part[way[-1]] = value
    file.write_text(f"{json.dumps(said)}\n{rest}")
    return request.param, file


def test_every_command_does_the_rest(absurd, tmp_path, capsys, caplog, monkeypatch):
    what, file = absurd
    monkeypatch.setenv("EVMPERF_HISTORY", str(tmp_path / "store"))
    for line in COMMANDS.strip().splitlines():
        if what in ("when", "before", "after") and line.startswith("compare"):
            continue  # it is the run that is compared
        spool.leave_out.cache_clear()
        caplog.clear()
        status = main([word.format(results=tmp_path / "results", out=tmp_path) for word in line.split()])
        said = capsys.readouterr()
        whole = file.name == "run.json" or (what == "value" and line.startswith(JUDGING))
        assert status in (ExitStatus.OK, ExitStatus.UNDECIDED, ExitStatus.NOTHING, ExitStatus.FAILED), said
        if what != "tiny" and (whole or line.startswith(READERS)) and "--from history" not in line:
            assert str(file.parent) in caplog.text + said.err, line
