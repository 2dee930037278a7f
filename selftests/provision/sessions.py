"""Whole sessions, as people start them: an image and what is measured in one command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from selftests.support import programs

ROOT = Path(__file__).resolve().parents[2]


def measure(file: Path, results: Path, *options: object) -> dict[str, Any]:
    """Measure one boot with these options; its run, and as `said` what the session printed."""
    before = set(results.glob("*"))
    done = programs.pytest(
        "--lg-env", file, *map(str, options), f"--results={results}", "-k", "boot_time and init"
    )
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    (run,) = set(results.glob("*")) - before
    return {**json.loads((run / "run.json").read_text()), "said": done.stdout}


def measure_in_turn(file: Path, releases: Sequence[Path], results: Path) -> None:
    """Measure each release in one command, and see that its run says which it was."""
    for image in releases:
        run = measure(file, results, "--image", image)
        name = image.name.removesuffix(".wic.zst")
        assert run["release"] == name
        assert run["facts"]["provisioned"]["name"] == image.name
        assert f"the board runs {image.name}: {name}" in run["said"]
