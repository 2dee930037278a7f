"""evmperf as its users install it: a wheel in an environment of its own."""

import os
import shutil
import sys
import venv
from importlib.metadata import version

from selftests.support import copied, programs

ROOT = programs.REPOSITORY


def run(*words, cwd, **environment):
    """Run a program without the checkout's modules; returns how it ended, and what it printed."""
    without = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return programs.run(*words, cwd=cwd, environment=without, timeout_s=900, **environment)


def install(folder):
    """Install the wheel into folder/venv, with what its base needs, at the versions of requirements.txt."""
    source = copied.copy(folder / "source")
    pip = ("-m", "pip", "--disable-pip-version-check", "--quiet")
    built = run(sys.executable, *pip, "wheel", "--no-deps", "--wheel-dir", folder, source, cwd=folder)
    assert built.returncode == 0, built.stderr
    shutil.rmtree(source)
    venv.create(folder / "venv", with_pip=True)
    (wheel,) = folder.glob("*.whl")
    # Most of what is installed is not imported.
    words = ["install", "--no-compile", "--constraint", ROOT / "requirements.txt", wheel]
    if "COVERAGE_PROCESS_CONFIG" in os.environ:  # `make coverage` counts what documented lines reach, too
        words.append(f"coverage=={version('coverage')}")
    done = run(folder / "venv" / "bin" / "python", *pip, *words, cwd=folder)
    assert done.returncode == 0, done.stderr
