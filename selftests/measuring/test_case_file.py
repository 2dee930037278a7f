"""A case of one run, packed into a file, is measured again from it on the same board."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evmperf.commands.cli.main import main
from evmperf.measure.runs import casefile, spool
from selftests.measuring.session import Pytest
from selftests.support import spools

pytestmark = pytest.mark.virtual_evm

CASE = ("emmc_vfat", "102400")


def test_a_case_is_packed_read_and_reproduced(
    measuring: Callable[..., Pytest], env_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = measuring(f"{CASE[0]} and {CASE[1]}")
    assert first.wait() == 0, first.last_sentence
    file, results = tmp_path / "problem.evmperf", tmp_path / "again"
    assert main(["case", "pack", str(first.folder), " ".join(CASE), "-o", str(file)]) == 0
    (packed,) = spool.read_results(casefile.unpack(file))
    assert (packed.benchmark, packed.case) == CASE
    assert packed.samples
    assert packed.state
    for command in (
        ["show", str(file)],
        ["why", str(file), CASE[0]],
        ["compare", str(file), str(first.folder)],
    ):
        assert main(command) in (0, 5, 6)
    status = main(["case", "measure", str(file), "--lg-env", str(env_file), f"--results={results}"])
    (folder,) = (path.parent for path in results.glob("*/run.json"))
    (again,) = spools.cases_of(folder)
    assert (again.benchmark, again.case, again.profile) == (*CASE, packed.profile)
    assert again.samples
    assert status in (0, 1, 5, 6)
    assert f"{CASE[0]}" in capsys.readouterr().out
