"""A command reads each file of a run once, counted by Python's own audit events of a real process."""

import json
import os
import sys
from collections import Counter

import pytest

from selftests.support import programs, runs

# A lock is no reading: whether a run is still measured is asked of its records' file.
COUNTING = """
import atexit, json, os, sys
opened = []
def note(event, words):
    if event == "open" and "/am64xx-" in str(words[0]) and words[2] & os.O_ACCMODE == os.O_RDONLY:
        frame = sys._getframe(1)
        while frame and frame.f_code.co_name != "is_live":
            frame = frame.f_back
        if not frame and not words[2] & os.O_DIRECTORY:
            opened.append(str(words[0]))
atexit.register(lambda: print("\\n" + json.dumps(opened)))
sys.addaudithook(note)
from evmperf.commands.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("words", ["check", "show", "why", "compare last~1 last --facts", "history"])
def test_a_command_reads_each_file_of_a_run_once(tmp_path, words):
    generator = runs.history(tmp_path / "results", nights=8)
    runs.write(tmp_path / "results", runs.results(generator), number=8)
    process = programs.run(
        sys.executable,
        "-c",
        COUNTING,
        *words.split(),
        cwd=tmp_path,
        environment={name: value for name, value in os.environ.items() if name != "EVMPERF_HISTORY"},
    )
    assert process.returncode in (0, 6), process.stdout + process.stderr
    counts = Counter(json.loads(process.stdout.splitlines()[-1]))
    assert sum(name.endswith("run.json") for name in counts) == 9, counts
    assert set(counts.values()) == {1}, counts.most_common(3)
