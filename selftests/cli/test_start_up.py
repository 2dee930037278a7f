"""What a call of `evmperf` loads before it knows what to do."""

import os
import sys

from selftests.support import programs

_SLOW = {"asyncio", "dataclasses", "evmperf_virtual.commands", "labgrid", "msgspec"}
_SLOW |= {"pytest", "secrets", "statistics", "yaml"}
_WITHOUT = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
"""`make coverage` loads modules of its own."""


def test_help_loads_nothing_slow():
    program = (
        "import contextlib, sys\n"
        "from evmperf.commands.cli.main import main\n"
        "sys.argv = ['evmperf', '--help']\n"
        "with contextlib.suppress(SystemExit):\n"
        "    main()\n"
        "print('loaded:', *sys.modules)\n"
    )
    ended = programs.run(sys.executable, "-c", program, environment=_WITHOUT, check=True)
    help_text, loaded = ended.stdout.rsplit("loaded:", 1)
    assert "history" in help_text
    assert not _SLOW & set(loaded.split())
