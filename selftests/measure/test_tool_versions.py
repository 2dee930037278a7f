"""What tells one build of a tool from another, asked of real programs."""

import hashlib
import os

import pytest

from evmperf.measure import provenance, shellstep
from selftests.support.fakes import LocalShell


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        # A version is the first line that the program tells.
        ("somebench", 'echo "somebench 3.1 $1"; echo more', "somebench 3.1 --version"),
        # A program without one is told by itself.
        ("somebench", "echo \"$0: invalid option -- '-'\" >&2; exit 1", ""),
        ("somebench", "echo \"$0: unrecognized option '$1'\" >&2; exit 1", ""),
        ("somebench", 'echo "Usage: $0 [options]"', ""),
        ("somebench", "exit 0", ""),
        # One that would measure is not started.
        ("stream_c", 'echo "Copy: 8000"', ""),
    ],
)
def test_a_program_is_told_by_its_version_or_by_itself(tmp_path, monkeypatch, name, text, version):
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
    assert found == {name: version or f"sha256 {digest}"}
