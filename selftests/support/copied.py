"""A copy of the checkout in which a test may change what it likes."""

import shutil
import sys

from selftests.support import programs

_NOT_OURS = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "node_modules")
_MADE = ("results", "build", "*.egg-info")


def copy(folder):
    """Copy the checkout to a folder that is not there yet."""
    ignored = shutil.ignore_patterns(*_NOT_OURS, *_MADE)
    return shutil.copytree(programs.REPOSITORY, folder, ignore=ignored, symlinks=True)


def python(folder, *words):
    """Run Python in a copy, on the copy's evmperf; its output."""
    path = f"{folder}:{folder}/virtual-evm"
    done = programs.run(sys.executable, *words, cwd=folder, PYTHONPATH=path, LG_PLACE="somewhere")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
