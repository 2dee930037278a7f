"""Jobs that are submitted, followed, judged and read, at a server on loopback with LAVA's answers, and what
pytest reports within a job.
"""

import json
import os
import stat
from pathlib import Path

import pytest
import yaml

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.commands.cli import main as cli
from evmperf.commands.lava import joblog
from evmperf.commands.lava.joblog import SUITE
from evmperf.commands.lava.selection import case_name
from evmperf.commands.lava.server import TOKEN_VARIABLE, URL_VARIABLE, connect
from evmperf.measure.runs.spool import read_results, read_run
from evmperf.model.exits import ExitStatus
from evmperf.model.results import Result, Sample, Status
from selftests.provision import imagelab
from selftests.support import hostile, lava_jobs, programs
from selftests.support.lava_jobs import END

BOOTS = (Path(__file__).parents[1] / "data/lava/boots.log").read_text()
MEASURED = lava_jobs.answered(
    boards.load(boards.find("virtual")), hostile.answer(hostile.tar(hostile.member("number", b"12\n")))
)
PANIC = {"lvl": "target", "msg": "[   99.912345] Kernel panic - not syncing: sysrq triggered crash"}


def broken(error_type, *before):
    """The log of a job that was measured, and then ended so."""
    last = {**END, "result": "fail", "error_type": error_type, "error_msg": "it says"}
    *lines, _ = MEASURED.splitlines()
    entries = [{"dt": "2026-11-20T23:00:00", **entry} for entry in (*before, {"lvl": "results", "msg": last})]
    return "\n".join([*lines, *(f"- {json.dumps(entry)}" for entry in entries)]) + "\n"


class Lava:
    """What the server knows of its one job, number 1, and what it was told."""

    def __init__(self):
        self.definition, self.health, self.log, self.states = "", "Complete", MEASURED, ()
        self.results = {"plain.1": "pass", "plain.2": "pass", "plain.1.value": "pass"}

    def tell(self, handler):
        """Answer as LAVA 2023.01 does of the job."""
        state, *more = self.states or ("Finished",)
        self.states = tuple(more)
        answer = {
            "id": 1,
            "state": state,
            "health": self.health if state == "Finished" else "Unknown",
            "actual_device": "virtual-01",
            "original_definition": self.definition,
            "definition": self.definition,
        }
        handler.say(200, json.dumps(answer).encode())

    def tell_log(self, handler):
        """Answer with the log, if there is one."""
        handler.say(200 if self.log else 404, self.said.encode() if self.log else b"")

    def take(self, handler):
        """Take the job that is submitted."""
        self.definition = json.loads(handler.sent)["definition"]
        handler.say(201, b'{"message": "job(s) successfully submitted", "job_ids": ["1"]}')

    @property
    def said(self):
        """The log with what the job's test cases reported, and one of LAVA's own."""
        *lines, last = self.log.splitlines()
        cases = {"x": ("lava", "fail")} | {n: (f"0_{SUITE}", said) for n, said in self.results.items()}
        for name, (suite, said) in cases.items():
            message = {"case": name, "definition": suite, "result": said}
            lines.append(f"- {json.dumps({**json.loads(last[2:]), 'lvl': 'results', 'msg': message})}")
        return "\n".join([*lines, last]) + "\n"


@pytest.fixture
def lava(answers, monkeypatch):
    """What the server knows; the catalogue has the benchmarks of lava_jobs, too."""
    job = Lava()
    answers |= {"jobs/1/": job.tell, "jobs/1/logs/": job.tell_log, "jobs/": job.take}
    known = {**catalogue.benchmarks(), **lava_jobs.CATALOGUE}
    monkeypatch.setattr(catalogue, "benchmarks", lambda: known)
    return job


def called(*words):
    return cli.main(["lava", *map(str, words)])


def render(lava, capsys, *words):
    """Let the server have the job of these words."""
    assert called("render", "virtual", *words) == 0
    lava.definition = capsys.readouterr().out


def runs():
    return [read_run(file.parent) for file in Path("results").glob("*/run.json")]


def test_a_job_is_followed_to_its_end_and_read_once(lava, capsys):
    lava.states = ("Running", "Finished")
    words = ["submit", "virtual", "-k", "plain", "--profile", "quick", "--wait", "--import"]
    assert called(*words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("job 1: http://127.0.0.1:")
    assert lines[1:3] == ["job 1: Running on virtual-01", "job 1: Finished on virtual-01"]
    assert lines[3].startswith("job 1: read: results/virtual-evm-")
    assert lines[-1] == "job 1 is complete: 2 of 2 cases passed"
    (run,) = runs()
    assert (run.kind, run.place, run.facts.lava_job["number"]) == ("lava", "virtual-01", 1)
    assert called("import", "http://lava/scheduler/job/1") == 0
    assert "already read before, left unchanged" in capsys.readouterr().out
    assert called("import", "1", "--results", "r", "--run-kind", "nightly", "--fact", "fixture=A=1") == 0
    (run,) = [read_run(file.parent) for file in Path("r").glob("*/run.json")]
    assert (run.kind, run.facts.to_dict()["fixture"]) == ("nightly", "A=1")


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        (
            {"results": {"plain.1": "fail"}},
            ExitStatus.FAILED,
            ": fail\nplain.2: did not report\njob 1 is complete: 0 of 2",
        ),
        ({"health": "Incomplete"}, ExitStatus.LAB_BROKEN, "is Incomplete: LAVA gives no reason; 2 of 2"),
        (
            {"health": "Incomplete", "log": broken("Job", PANIC)},
            ExitStatus.FAILED,
            "(LAVA: it says) (board); 2 of 2",
        ),
        ({"health": "Incomplete", "log": ""}, ExitStatus.LAB_BROKEN, "job 1 has no log: it never ran"),
        ({"health": "Canceled", "log": ""}, ExitStatus.LAB_BROKEN, f"{joblog.CANCELLED} (lab); 0 of 2"),
    ],
)
def test_a_job_is_judged_by_what_it_reported(lava, capsys, changes, status, said):
    render(lava, capsys, "-k", "plain", "--profile", "quick")
    vars(lava).update(changes)
    assert called("wait", "1") == status
    assert said in capsys.readouterr().out


def test_a_job_of_boots_has_its_figures_in_its_log(lava, capsys):
    render(lava, capsys, "--kind", "boot")
    lava.log = BOOTS + f"- {json.dumps({'dt': '2026-11-21T07:24:00', 'lvl': 'results', 'msg': END})}\n"
    assert called("wait", "1") == 0
    assert "read them with `evmperf lava import 1`" in capsys.readouterr().out
    assert called("import", "1") == ExitStatus.FAILED  # the log was recorded of an earlier job, of two boots
    (run,) = runs()
    (first, *_) = read_results(Path("results", run.id))
    assert first.values("boot_time") == [pytest.approx(14.81769)]
    assert f"job 1: read: results/{run.id}\n{run.outcome}\n" in capsys.readouterr().out


def test_a_job_on_the_lab_host_keeps_its_results(lava, capsys):
    assert called("submit", "virtual", "-k", "plain", "--kind", "host", "--wait", "--import") == 0
    said = capsys.readouterr().out
    assert "job 1: nothing to read" in said
    assert not runs()


def test_the_board_file_of_a_job_that_was_submitted_is_that_of_the_call(lava, tmp_path, capsys):
    (tmp_path / "lab").mkdir()
    file = tmp_path / "lab/ours.yaml"
    file.write_text(boards.find("virtual").read_text())
    assert called("submit", file, "-k", "plain", "--profile", "quick", "--wait") == 0
    assert "2 of 2 cases passed" in capsys.readouterr().out


def test_a_job_that_is_not_to_be_followed_to_its_end(lava, capsys):
    assert called("submit", "virtual", "-k", "plain") == 0
    assert capsys.readouterr().out.count("\n") == 1
    lava.states = ("Running",)
    assert called("import", "1") == ExitStatus.USAGE
    assert "with `evmperf lava wait 1`" in capsys.readouterr().err
    lava.states = ("Running",)
    assert called("wait", "1", "--timeout", "0") == ExitStatus.LAB_BROKEN
    assert "job 1 is still Running after 0 s" in capsys.readouterr().err


def test_a_whole_image_tells_the_job_what_must_run(lava, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EVMPERF_CACHE", str(tmp_path / "cache"))
    words = ["-k", "plain", "--image"]
    assert called("render", "virtual", *words, "file:///nowhere/a.wic") == 0
    said = capsys.readouterr()
    assert "/nowhere/a.wic is not on this machine" in said.err
    assert "image_kernel" not in said.out
    image = imagelab.build(tmp_path / "a.wic")
    render(lava, capsys, *words, f"file://{image}")
    (metadata,) = yaml.safe_load(lava.definition)["metadata"].values()
    header = joblog.decode_header(metadata)
    assert (header["image_uboot"], header["image_kernel"]) == (imagelab.BANNER, imagelab.RELEASE)
    assert header["release"] == "2025.01"


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
from selftests.lava.test_lava_followed import result_of

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
