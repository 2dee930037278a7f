"""The pipeline run here by gitlab-ci-local, which also checks it against GitLab's own schema."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evmperf.measure.runs import folders
from selftests.support import programs, virtualbench
from selftests.support.spools import cases_of

pytestmark = pytest.mark.virtual_evm

ROOT = Path(__file__).parents[2]
PACKAGE = "gitlab-ci-local@4.61.1"  # the last but few that runs on Node 18 and 20
DEADLINE_S = 600

Here = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def program() -> Path:
    """gitlab-ci-local, fetched once into the cache."""
    folder = folders.cache_dir() / PACKAGE.replace("@", "-")
    found = folder / "node_modules/.bin/gitlab-ci-local"
    if not found.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-fund", "--no-audit", "--prefix", folder, PACKAGE]
        subprocess.run(command, check=True, timeout=DEADLINE_S, stdout=subprocess.DEVNULL)
    return found


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout as it is now, in a git repository of its own, with our .venv."""
    copy = tmp_path / "evmperf"
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    command = ["rsync", "-a", "--from0", "--files-from=-", f"{ROOT}/", f"{copy}/"]
    subprocess.run(command, input=files, check=True)
    (copy / ".venv").symlink_to(Path(os.environ.get("VIRTUAL_ENV", ROOT / ".venv")))
    # Newer than our environment, make would install the copy into it.
    for name in (
        "requirements.txt",
        "pyproject.toml",
        "virtual-evm/pyproject.toml",
        "guide-reader/pyproject.toml",
        "scripts/venv",
    ):
        os.utime(copy / name, (0, 0))
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "copy"]):
        name = ["-c", "user.name=evmperf", "-c", "user.email=evmperf@localhost"]
        subprocess.run(["git", *name, *words], cwd=copy, check=True)
    origin = ["remote", "add", "origin", "git@localhost:lab/evmperf.git"]
    subprocess.run(["git", *origin], cwd=copy, check=True)
    return copy


@pytest.fixture
def here(program: Path, checkout: Path) -> Here:
    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        given = {"CI_PIPELINE_SOURCE": "schedule", **variables}
        more = [word for key, value in given.items() for word in ("--variable", f"{key}={value}")]
        return programs.run(program, *words, *more, cwd=checkout, timeout_s=DEADLINE_S)

    return run


@pytest.fixture
def board_file(tmp_path: Path) -> Iterator[Path]:
    """The board file of a virtual EVM of our own, with a running bench."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVMPERF_STATE", str(tmp_path / "state"))
        with virtualbench.running("virtual", "gitlab") as bench:
            yield virtualbench.board_file(bench, "virtual", tmp_path)


def jobs(listed: str) -> set[str]:
    """The first column of gitlab-ci-local's list."""
    lines = listed.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("name "))
    width = lines[start].index("description")
    return {line[:width].strip() for line in lines[start + 1 :]}


def test_merge_requests_and_nights_have_their_own_jobs(here: Here) -> None:
    night = here("--list")
    assert night.returncode == 0, night.stdout + night.stderr
    assert "json schema validated" in night.stdout + night.stderr
    assert jobs(night.stdout) == {"nightly plan", "nightly"}
    planned = here("--list", EVMPERF_PLAN="night.yaml")
    assert jobs(planned.stdout) == {"night"}
    request = here("--list", CI_PIPELINE_SOURCE="merge_request_event")
    assert jobs(request.stdout) == {"lint", "test"}


def test_a_night_is_planned_and_measured(here: Here, checkout: Path, board_file: Path) -> None:
    chosen = {"EVMPERF_BOARDS": str(board_file), "EVMPERF_BENCHMARKS": "emmc_vfat and 102400"}
    planned = here("nightly plan", **chosen)
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert (checkout / "nightly.yml").is_file()
    listed = here("--file", "nightly.yml", "--list-all")
    assert jobs(listed.stdout) >= {"measure virtual", "judge virtual", "pages"}
    measured = here("--file", "nightly.yml", "measure virtual")
    assert measured.returncode == 0, measured.stdout + measured.stderr
    (run,) = checkout.glob("results/*/run.json")
    assert {result.benchmark for result in cases_of(run.parent)} == {"emmc_vfat"}
    assert all(result.status == "measured" for result in cases_of(run.parent))
    shutil.rmtree(checkout / "results")
