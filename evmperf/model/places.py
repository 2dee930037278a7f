"""Places that several rooms agree on."""

from __future__ import annotations

from pathlib import Path

STEP_FOLDER = "/tmp/evmperf"
"""Where steps live on the board. The tester, which may serve several, has one folder a run."""

_PACKAGE = Path(__file__).resolve().parents[1]


def project(name: str) -> Path:
    """A top-level folder of the project (`env`, `tests`, `baselines`, ...).

    A checkout has it beside the package, an installed evmperf inside (setup.py puts it there).
    """
    installed = _PACKAGE / "project" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
