"""Places that several rooms agree on."""

from __future__ import annotations

STEP_FOLDER = "/tmp/evmperf"
"""Where steps live on the board. The tester, which may serve several, has one folder a run."""
