"""What Apache Otava and asv's step detection say of the same series, in a Python of their own: their
dependencies would move evmperf's pins.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
PACKAGES = ("apache-otava==0.8.0", "asv==0.6.6")
NAMES = ("Otava", "asv")
_PROGRAM = """
import json, sys, numpy
from asv.step_detect import detect_steps
from otava.analysis import compute_change_points
given = numpy.load(sys.argv[1])
with open(sys.argv[2], "w") as answers:
    for row in given["rows"]:
        for end in given["ends"]:
            values = [float(value) for value in row[:end]]
            points = [[]]
            if given["first"] == 0:
                points = [[int(point.index) for point in compute_change_points(values)[0]]]
            points.append([int(step[0]) for step in detect_steps(values)[1:]])
            print(json.dumps(points), file=answers)
"""


def change_points(rows, ends, first=0):
    """The change points of each row up to each end, by peer: [row][end][peer]; peers before the
    `first` are not asked.
    """
    with tempfile.TemporaryDirectory(prefix="evmperf-peers-") as folder:
        given, answers = Path(folder, "given.npz"), Path(folder, "answers")
        np.savez(given, rows=rows, ends=np.asarray(ends), first=first)
        one_core = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([_python(), "-c", _PROGRAM, str(given), str(answers)], env=one_core, check=True)
        found = iter(answers.read_text().splitlines())
        return [[json.loads(next(found)) for _ in ends] for _ in rows]


def _python():
    """The peers' interpreter, installed once into the cache folder of the tests."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "evmperf" / "peers-1"
    python = folder / "bin" / "python"
    if not (folder / "whole").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        (folder / "whole").touch()
    return python
