"""What tells one build of a tool from another, asked of real programs."""

import hashlib
import os

import pytest

from evmperf.measure import provenance, shellstep
from selftests.support.fakes import LocalShell


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Put a program on the PATH, and ask for its version."""

    def ask(name, text):
        program = tmp_path / "bin" / name
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        shell = LocalShell(tmp_path / "board")
        shellstep.install(shell)
        script = provenance.tool_script([name, "not-installed"])
        found = provenance.tools(shellstep.run(shell, script, 30).files)
        digest = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
        return found, f"sha256 {digest}"

    return ask


def test_a_version_is_the_first_line_that_the_program_tells(told):
    found, _ = told("somebench", 'echo "somebench 3.1 $1"; echo more')
    assert found == {"somebench": "somebench 3.1 --version"}


@pytest.mark.parametrize(
    "text",
    [
        "echo \"$0: invalid option -- '-'\" >&2; exit 1",
        "echo \"$0: unrecognized option '$1'\" >&2; exit 1",
        'echo "Usage: $0 [options]"',
        "exit 0",
    ],
)
def test_a_program_without_a_version_is_told_by_itself(told, text):
    found, digest = told("somebench", text)
    assert found == {"somebench": digest}


def test_a_program_that_would_measure_is_not_started(told):
    found, digest = told("stream_c", 'echo "Copy: 8000"')
    assert found == {"stream_c": digest}
