"""What a call of `evmperf` loads before it knows what to do."""

import subprocess
import sys

_SLOW = {"dataclasses", "labgrid", "msgspec", "pytest", "secrets", "statistics", "yaml"}


def test_help_loads_nothing_slow():
    program = (
        "import contextlib, sys\n"
        "from evmperf.commands.cli.main import main\n"
        "sys.argv = ['evmperf', '--help']\n"
        "with contextlib.suppress(SystemExit):\n"
        "    main()\n"
        "print('loaded:', *sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    help_text, loaded = ended.stdout.rsplit("loaded:", 1)
    assert "history" in help_text
    assert not _SLOW & set(loaded.split())
