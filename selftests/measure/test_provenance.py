"""What a run says of its origin: where it can be looked at, documents and tools of the board, and how it was
varied.
"""

import hashlib
import os

import pytest

from evmperf.boards import variation
from evmperf.measure import documents, provenance, shellstep, varied
from evmperf.model.errors import LabError
from evmperf.model.run import Run
from selftests.support.fakes import LocalShell

JOB = "https://gitlab.lab/lab/evmperf/-/jobs/7"
GITLAB = {"CI_JOB_URL": JOB, "CI_PIPELINE_URL": "https://gitlab.lab/lab/evmperf/-/pipelines/3"}


@pytest.mark.parametrize(
    ("given", "report"),
    [
        ({}, ""),  # at a desk
        ({**GITLAB, "CI_PROJECT_DIR": "{}"}, f"{JOB}/artifacts/file/results/am64x-1/report.html"),
        ({**GITLAB, "CI_PROJECT_DIR": "{}/project"}, ""),  # results elsewhere are no artifacts
        (
            {**GITLAB, "CI_PROJECT_DIR": "{}", "EVMPERF_RESULTS_URL": "https://lab/results/"},
            "https://lab/results/am64x-1/report.html",
        ),
    ],
    ids=["desk", "job", "elsewhere", "served"],
)
def test_a_run_is_found_where_its_lab_or_its_job_has_it(tmp_path, given, report):
    found = provenance.addresses(
        tmp_path / "results", {name: text.format(tmp_path) for name, text in given.items()}
    )
    assert Run("am64x-1", "am64x", "full", addresses=found).report == report
    pages = [GITLAB[name] for name in ("CI_JOB_URL", "CI_PIPELINE_URL") if name in given]
    assert [found[name] for name in ("job", "pipeline") if name in found] == pages


CONFIG = "CONFIG_HZ=250\n" * 3


class Machine:
    """Has a kernel configuration and no device tree; counts what it is asked."""

    def __init__(self, config=CONFIG):
        self.config = config
        self.asked = []

    def perform(self, command):
        self.asked.append(command)
        if "sha256sum" not in command:
            return {"kernel_config": self.config}
        nothing, digest = (hashlib.sha256(t.encode()).hexdigest() for t in ("", CONFIG))
        return {
            "dmesg": "[ 0.1] hello\n",
            "device_tree": f"{nothing}  -\n",
            "kernel_config": f"{digest}  -\n",
        }


def gather(folder, machine):
    folder.mkdir()
    documents.gather(folder, machine.perform)
    return {file.name: file.read_text() for file in (folder / documents.FOLDER).iterdir()}


def test_what_is_large_is_fetched_once_for_all_runs(tmp_path):
    machine = Machine()
    expected = {"dmesg": "[ 0.1] hello\n", "kernel_config": CONFIG}
    assert gather(tmp_path / "one", machine) == expected
    assert len(machine.asked) == 2
    assert "device-tree" not in machine.asked[1]
    assert gather(tmp_path / "two", machine) == expected
    assert len(machine.asked) == 3


def test_a_large_document_that_came_back_wrong_is_not_kept(tmp_path):
    kept = gather(tmp_path / "one", Machine(config="CONFIG_HZ=25"))
    assert "kernel_config" not in kept
    assert gather(tmp_path / "two", Machine())["kernel_config"] == CONFIG


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


def test_a_command_that_fails_is_the_labs_failure(tmp_path):
    shell = LocalShell(tmp_path)
    shellstep.install(shell)
    with pytest.raises(LabError, match=r"run:.*exit status 3 on the board: no such governor"):
        varied.apply(variation.parse(["run:echo no such governor; exit 3"]), shell, shellstep)


def test_arguments_must_be_on_the_running_kernels_command_line():
    wanted = variation.parse(["args:quiet loglevel=3"])
    varied.check(wanted, "console=ttyS0 quiet loglevel=3 ro")
    with pytest.raises(LabError, match=r"args:quiet: .*kernel"):
        varied.check(wanted, "console=ttyS0 loglevel=3 quietly")
