"""What a shell completes: asked as argcomplete's shell functions ask."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("evmperf comp", "compare"),
        ("evmperf lava sub", "submit"),
        ("evmperf lava render virtual --kind na", "native"),
    ],
)
def test_commands_options_and_choices_are_completed(tmp_path, line, word):
    answer = tmp_path / "answer"
    environment = os.environ | {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_IFS": "\n",
    }
    evmperf = Path(sys.executable).with_name("evmperf")
    subprocess.run([evmperf], env=environment, check=False, timeout=60)
    assert word in [said.strip() for said in answer.read_text().split("\n")]
