"""What a call of `evmperf` loads before it knows what to do."""

import os
import subprocess
import sys

from selftests.support import programs

_SLOW = {"asyncio", "dataclasses", "evmperf_virtual.commands", "labgrid", "msgspec"}
_SLOW |= {"pytest", "secrets", "statistics", "yaml"}
_WITHOUT = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
"""`make coverage` loads modules of its own."""
_EXTRA = {"docutils", "sphinx", "weasyprint", "fsspec", "duckdb", "pyvisa"}
"""What the base wheel does not bring."""


def test_no_command_needs_an_extra_to_describe_itself():
    program = (
        "import sys\n"
        "from evmperf.commands.cli import main\n"
        "for group in main._COMMANDS.values():\n"
        "    for module, _ in group.values():\n"
        "        main._module(module)\n"
        "print(*sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    loaded = ended.stdout.split()
    assert "evmperf.commands.cli.guide" in loaded
    assert not _EXTRA & set(loaded)


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
