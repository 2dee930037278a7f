"""The command's bad input, without a LAVA: images, servers, tokens; pytest's reports to LAVA."""

import os
import stat

from evmperf.commands.cli import main as cli
from evmperf.commands.lava.selection import case_name
from evmperf.commands.lava.server import TOKEN_VARIABLE, URL_VARIABLE, connect
from evmperf.model.exits import ExitStatus
from evmperf.model.results import Result, Sample, Status
from selftests.support import programs


def called(*words):
    return cli.main(["lava", *words])


def test_a_token_comes_from_the_environment_and_is_never_shown(monkeypatch, capsys):
    monkeypatch.setenv(URL_VARIABLE, "http://127.0.0.1:9/")
    monkeypatch.setenv(TOKEN_VARIABLE, "s3cret\n")
    server = connect()
    assert server.url == "http://127.0.0.1:9"
    assert server._session.headers["Authorization"] == "Token s3cret"
    assert called("wait", "12") == ExitStatus.LAB_BROKEN
    said = "".join(capsys.readouterr())
    assert "http://127.0.0.1:9 cannot be reached (ConnectionError)" in said
    assert "s3cret" not in said


def test_names_of_all_cases_differ():
    from evmperf.benchmarks import catalogue

    for profile in ("full", "quick"):
        found = [
            case_name(benchmark, case)
            for benchmark in catalogue.benchmarks().values()
            for case in benchmark.cases(profile)
        ]
        assert len(set(found)) == len(found)


REPORTED = """\
emmc_vfat.1.write_throughput --result pass --measurement 2.500000 --units MB/s
emmc_vfat.1 --result pass
emmc_vfat.2 --result fail
"""

TEST = """
import pytest
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks import catalogue
from evmperf.model.results import Case
from pytest_evmperf import lava, plugin
from selftests.lava.test_lava_calls import result_of

BENCHMARK = catalogue.benchmark("emmc_vfat")

@pytest.mark.parametrize(("benchmark", "case"), [(BENCHMARK, Case(n)) for n in "12"])
def test_it(request, benchmark, case):
    result = result_of(case.label)
    if result:
        request.node.stash[plugin.RESULT] = result
    else:
        pytest.fail("no result")
"""


def result_of(label):
    if label != "1":
        return None
    samples = tuple(Sample("write_throughput", v, "MB/s", n, 1) for n, v in enumerate([2.0, 3.0]))
    return Result("emmc_vfat", 1, "emmc", "1", {}, "quick", Status.MEASURED, samples)


_ONLY_LAVA = ["-p", "no:pytest_evmperf.plugin", "-p", "pytest_evmperf.lava"]


def test_in_a_lava_job_every_case_and_figure_is_reported(tmp_path):
    program = tmp_path / "lava-test-case"
    program.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/reported\necho "<SIGNAL $1>"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "test_it.py").write_text(TEST)
    done = programs.pytest(
        *_ONLY_LAVA,
        "-q",
        "-c",
        "/dev/null",
        str(tmp_path / "test_it.py"),
        cwd=tmp_path,
        PATH=f"{tmp_path}:{os.environ['PATH']}",
        LAVA_RESULT_DIR=str(tmp_path),
        PYTHONPATH=os.pathsep.join([str(cli.__file__).rpartition("/evmperf/")[0]]),
    )
    assert (tmp_path / "reported").read_text() == REPORTED, done.stdout
    # LAVA looks for the signal anywhere in a line, which must not be broken.
    assert "<SIGNAL emmc_vfat.1>\n" in done.stdout
    assert "<SIGNAL emmc_vfat.2>\n" in done.stdout
