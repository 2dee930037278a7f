"""The nightly pipeline and a merge request's note, without a GitLab; nights judged without a database."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import yaml

from evmperf.boards.board import ENV_DIR
from evmperf.commands.cli import main as cli
from evmperf.commands.gitlab.note import TOKEN_VARIABLE, MergeRequest
from evmperf.commands.gitlab.pipeline import Over, real_boards, render
from evmperf.commands.night import plan
from evmperf.judge.past import FEWEST
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.errors import LabError, UsageError
from evmperf.model.exits import ExitStatus
from selftests.support import programs, runs, web

VARIABLES = ("OVER", "BOARDS", "BENCHMARKS", "PROFILE", "RELEASE", "IMAGES", "AGAINST", "RUNNER_TAG")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(f"EVMPERF_{name}", raising=False)


def night(over=Over.LABGRID, names=("am64x", "virtual"), job=(), **more):
    data = {"boards": [{"board": name, **dict(job)} for name in names], **more}
    return yaml.safe_load(render(plan.checked(data, "here", "n"), over))


def test_a_night_has_a_job_for_every_real_board():
    data = night(names=real_boards())
    stems = {file.stem for file in ENV_DIR.glob("*.yaml") if not file.stem.startswith("virtual")}
    assert {name.removeprefix("measure ") for name in data if name.startswith("measure")} == stems
    assert {name.removeprefix("judge ") for name in data if name.startswith("judge")} == stems


def found(data, place):
    """What stands at a place of a pipeline; None where it is not."""
    for key in place.split("/"):
        data = data.get(key, {})
    return data or None


@pytest.mark.parametrize("case", yaml.safe_load(Path(__file__).with_name("pipelines.yaml").read_text()))
def test_a_plan_becomes_jobs_or_is_refused(case):
    given = {"over": Over(case.get("over", "labgrid")), "job": case.get("job", ()), **case.get("plan", {})}
    if "refused" in case:
        with pytest.raises(UsageError, match=case["refused"]) as refused:
            night(**given)
        assert "s3cr3tPW" not in str(refused.value)
        assert "glpat" not in str(refused.value)
        return
    data = night(**given)
    for place, wanted in case["has"].items():
        there = found(data, place)
        assert wanted in "\n".join(there) if isinstance(there, list) and wanted != there else there == wanted
    for place, words in case.get("lacks", {}).items():
        assert words not in "\n".join(found(data, place) or ()) if words else found(data, place) is None


def test_a_night_ends_with_push_where_a_database_is_named(monkeypatch, capsys):
    monkeypatch.setenv("EVMPERF_INFLUX_URL", "http://influx:8086")
    assert cli.main(["gitlab", "pipeline", "--boards", "am64x"]) == 0
    assert ".venv/bin/evmperf push" in yaml.safe_load(capsys.readouterr().out)["pages"]["script"]


def test_a_plan_of_a_night_is_a_pipeline_as_well(tmp_path, capsys):
    file = tmp_path / "lab.yaml"
    job = {"board": "am64x.yaml", "place": "am64x-3", "profile": "quick", "options": ["--keep-on"]}
    file.write_text(yaml.safe_dump({"boards": [job], "guide": False, "history": "/srv/runs"}))
    words = ["--release", "12.00", "--repeat", "until:2%/30m"]
    assert cli.main(["gitlab", "pipeline", str(file), *words]) == 0
    data = yaml.safe_load(capsys.readouterr().out)
    job = data["measure am64x-3"]
    assert job["variables"] == {"LG_PLACE": "am64x-3"}
    given = "--profile quick --release 12.00 --run-kind nightly --keep-on --repeat=until:2%/30m"
    assert job["script"][0].endswith(given)
    assert "--from /srv/runs" in data["judge am64x-3"]["script"][0]
    assert not any("guide" in line for line in data["pages"]["script"])


def test_a_pipeline_of_a_labs_own_repository_names_only_what_is_in_it(tmp_path, monkeypatch, capsys):
    lab = tmp_path / "lab"
    (lab / "env").mkdir(parents=True)
    for file in (lab / "env/ours.yaml", lab / "beside.yaml", tmp_path / "outside.yaml"):
        shutil.copy(ENV_DIR / "am64x.yaml", file)
    monkeypatch.chdir(lab)
    words = ["gitlab", "pipeline", "--over", "lava-native", "--boards"]
    assert cli.main([*words, f"ours {lab}/beside.yaml am62l"]) == 0
    text = capsys.readouterr().out
    assert "make" not in text
    assert str(tmp_path) not in text
    data = yaml.safe_load(text)
    assert "cache" not in data["default"]
    assert data["default"]["before_script"] == [
        "python3 -m venv .venv",
        ".venv/bin/pip install --quiet 'evmperf[guide]'",
    ]
    submit = [data[f"measure {name}"]["script"][0].split()[3] for name in ("ours", "beside", "am62l")]
    assert submit == ["env/ours.yaml", "beside.yaml", "am62l.yaml"]
    (lab / "requirements.txt").write_text("evmperf==1.0\n")
    (lab / "Makefile").write_text("all:\n")
    assert cli.main([*words, "ours"]) == 0
    assert ".venv/bin/pip install --quiet -r requirements.txt" in capsys.readouterr().out
    assert cli.main([*words, "../outside.yaml"]) == ExitStatus.USAGE
    assert "put it into env/" in capsys.readouterr().err


@pytest.mark.parametrize("reference", ["$PW", "${PW}"])
def test_a_password_is_a_reference_to_a_variable_which_the_shell_of_the_job_reads(reference):
    (line,) = night(images=[f"http://u:{reference}@h/a b.wic"])["measure virtual"]["script"]
    words = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {line}"], env={"PW": "a b"}, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "http://u:a b@h/a b.wic" in words


def test_the_pipelines_variables_are_the_commands(monkeypatch, tmp_path):
    monkeypatch.setenv("EVMPERF_BOARDS", "am64x, j7200")
    monkeypatch.setenv("EVMPERF_OVER", "lava-host")
    monkeypatch.setenv("EVMPERF_RELEASE", "")
    assert cli.main(["gitlab", "pipeline", "-o", str(tmp_path / "nightly.yml")]) == 0
    data = yaml.safe_load((tmp_path / "nightly.yml").read_text())
    assert "lava submit j7200.yaml --kind host" in data["measure j7200"]["script"][0]
    parent = yaml.safe_load((ENV_DIR.parent / ".gitlab-ci.yml").read_text())
    assert set(parent["variables"]) - {"EVMPERF_PLAN"} <= {f"EVMPERF_{name}" for name in VARIABLES}
    assert parent["variables"]["EVMPERF_OVER"]["options"] == [str(over) for over in Over]


PARENT = ENV_DIR.parent / ".gitlab-ci.yml"


def rendered(data):
    """The jobs of a pipeline as GitLab makes them: `extends` and `default` put in."""
    reserved = ("stages", "default", "variables", "workflow", "include")
    jobs = {name: job for name, job in data.items() if name not in reserved}

    def whole(job):
        base = whole(jobs[job["extends"]]) if "extends" in job else data.get("default", {})
        return base | job

    return {name: whole(job) for name, job in jobs.items() if not name.startswith(".")}


@pytest.mark.parametrize("pipeline", ["the repository's", "the night's"])
def test_every_job_finds_the_environment_of_the_one_before(pipeline):
    """Its cache belongs to files that there are, and what it calls is there or made by make."""
    data = yaml.safe_load(PARENT.read_text()) if pipeline == "the repository's" else night()
    targets = re.findall(r"^([a-z-]+):", (PARENT.parent / "Makefile").read_text(), re.MULTILINE)
    jobs = {name: job for name, job in rendered(data).items() if "script" in job}
    assert len(jobs) >= 3
    for name, job in jobs.items():
        assert job["stage"] in data["stages"], name
        assert job["cache"]["paths"] == [".venv/"]
        key = job["cache"]["key"]["files"]
        # GitLab takes two at most.
        assert len(key) <= 2
        assert all((PARENT.parent / file).is_file() for file in key), name
        for line in [*job.get("before_script", []), *job["script"]]:
            program, *words = shlex.split(line)
            assert program.startswith(".venv/bin/") or program in ("make", "mkdir", "exit"), line
            assert program != "make" or set(words) <= set(targets), line


def test_merge_requests_run_what_ci_runs():
    parts = re.findall(r"^part make (\S+)$", (PARENT.parent / ".ci/run").read_text(), re.MULTILINE)
    jobs = rendered(yaml.safe_load(PARENT.read_text()))
    checks = [
        line.split()[1] for job in jobs.values() if job.get("stage") == "check" for line in job["script"]
    ]
    assert checks == ["lint", "test"]
    prepared = re.findall(r"^test: (.+?) ##", (PARENT.parent / "Makefile").read_text(), re.MULTILINE)[
        0
    ].split()
    assert set(parts) <= {*checks, *prepared, "setup"}
    assert [part for part in parts if part in checks] == checks


def test_one_job_keeps_the_environment_and_a_nights_jobs_only_fetch_it():
    keeps = rendered(yaml.safe_load(PARENT.read_text()))["nightly plan"]["cache"]
    fetch = night()["default"]["cache"]
    assert fetch["policy"] == "pull"
    assert {name: fetch[name] for name in keeps} == keeps


BACKEND = """
import pathlib, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "tiny-1-py3-none-any.whl"
    about = "tiny-1.dist-info/"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        wheel.writestr("tiny.pth", str(pathlib.Path.cwd()))
        wheel.writestr(about + "METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n")
        wheel.writestr(about + "WHEEL", "Wheel-Version: 1.0\\n")
        wheel.writestr(about + "entry_points.txt", "[console_scripts]\\ntiny = tiny:main\\n")
        wheel.writestr(about + "RECORD", "")
    return name
"""


def test_an_environment_from_the_cache_works_in_another_folder(tmp_path):
    """Jobs have folders of their own; programs name theirs, and the package is the job's."""
    root = PARENT.parent
    for number in (1, 2):
        job = tmp_path / f"builds-{number}"
        job.mkdir()
        shutil.copytree(root / "scripts", job / "scripts")
        (job / "requirements.txt").touch()
        (job / "pyproject.toml").write_text(
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        )
        (job / "backend.py").write_text(BACKEND)
        (job / "tiny.py").write_text(f"def main():\n    print('job {number}')\n")
        if number == 2:
            (tmp_path / "builds-1/.venv").rename(job / ".venv")
        subprocess.run(["scripts/venv", sys.executable, ".venv"], cwd=job, check=True, capture_output=True)
        said = subprocess.run([job / ".venv/bin/tiny"], capture_output=True, text=True, check=True)
        assert said.stdout == f"job {number}\n"


def test_a_runner_without_a_host_package_is_told_and_asks_no_password(tmp_path):
    """Nobody is there to type one. Root, as in a container, installs."""
    packages = tmp_path / "packages.txt"
    packages.write_text("sl /nonexistent a steam locomotive\n")
    (tmp_path / "sudo").write_text("#!/bin/sh\necho asked >&2; exit 9\n")
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
    for program in ("sudo", "id"):
        (tmp_path / program).chmod(0o755)
    done = programs.run(
        PARENT.parent / "scripts/host-packages", packages, CI="true", PATH=f"{tmp_path}:{os.environ['PATH']}"
    )
    assert done.returncode == 1
    assert "needed: sl (a steam locomotive)" in done.stdout
    assert "make host-packages" in done.stderr
    assert "asked" not in done.stderr


class GitLab(web.Handler):
    """As much of GitLab's API as a note needs."""

    notes: list = []  # noqa: RUF012  # one server a test
    token = "secret"

    def do_GET(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        if self.headers["PRIVATE-TOKEN"] != self.token:
            self.say(401, b'{"message": "401 Unauthorized"}')
            return
        if self.command == "POST":
            self.notes.append({"id": len(self.notes), **body})
        if self.command == "PUT":
            self.notes[int(self.path.rpartition("/")[2])].update(body)
        self.say(200 + (self.command == "POST"), json.dumps(self.notes).encode())

    do_POST = do_PUT = do_GET


@pytest.fixture
def gitlab(monkeypatch):
    GitLab.notes = [{"id": 0, "body": "somebody's own note"}]
    monkeypatch.setenv("CI_PROJECT_ID", "7")
    monkeypatch.setenv("CI_MERGE_REQUEST_IID", "3")
    monkeypatch.setenv(TOKEN_VARIABLE, GitLab.token)
    with web.serving(GitLab) as server:
        monkeypatch.setenv("CI_API_V4_URL", f"{server.url}/api/v4")
        yield GitLab


def test_a_verdict_is_one_note_that_the_next_one_replaces(gitlab, tmp_path, capsys):
    verdict = tmp_path / "verdict-am64x.md"
    for text in ("worse", "same"):
        verdict.write_text(text)
        assert cli.main(["gitlab", "note", str(verdict)]) == 0
    bodies = [note["body"] for note in gitlab.notes]
    assert bodies == ["somebody's own note", "<!-- evmperf verdict-am64x -->\nsame"]
    assert capsys.readouterr().out.splitlines()[-1] == "note of verdict-am64x replaced"


def test_a_wrong_token_is_named_and_not_shown(gitlab, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(TOKEN_VARIABLE, "s3cret")
    verdict = tmp_path / "verdict.md"
    verdict.write_text("worse")
    assert cli.main(["gitlab", "note", str(verdict)]) == 3
    said = capsys.readouterr().err
    assert "GitLab answers 401" in said
    assert "s3cret" not in said


def test_outside_a_merge_request_there_is_no_note(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("CI_MERGE_REQUEST_IID", raising=False)
    assert cli.main(["gitlab", "note", str(tmp_path / "any.md")]) == 0
    assert capsys.readouterr().out == "no merge request: no note\n"


def test_a_missing_token_or_gitlab_is_said():
    variables = {"CI_API_V4_URL": "http://127.0.0.1:9", "CI_PROJECT_ID": "7"}
    variables["CI_MERGE_REQUEST_IID"] = "3"
    with pytest.raises(UsageError, match=f"{TOKEN_VARIABLE} is not set"):
        MergeRequest.of_pipeline(variables)
    request = MergeRequest.of_pipeline({**variables, TOKEN_VARIABLE: "x"})
    with pytest.raises(LabError, match=r"GitLab is not reached .*CI_API_V4_URL"):
        request.write("verdict", "same")


BOARD = "am64xx-hsevm"
WORSE = ("emmc_ext4", "102400", "write_throughput")
BENCHMARKS = ("emmc_ext4",)
NIGHTS = 12


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Judges a night's results in a new workspace, by the command of the job that does so; returns
    its status, and what its JUnit file says of each figure.
    """
    data = yaml.safe_load(render(plan.checked({"boards": [{"board": "am64x"}]}, "here", "n")))
    (line,) = data["judge am64x"]["script"]
    program, *words = shlex.split(line)
    assert program.endswith("/evmperf")
    monkeypatch.setenv("EVMPERF_HISTORY", str(tmp_path / "history"))
    monkeypatch.delenv("EVMPERF_INFLUX_URL", raising=False)

    def judge(number, found):
        workspace = tmp_path / f"workspace-{number}"
        workspace.mkdir()
        monkeypatch.chdir(workspace)
        runs.write(workspace / "results", found, board=BOARD, number=number)
        status = cli.main(words)
        cases = ET.parse(workspace / "verdict-am64x.xml").iter("testcase")
        kinds = {case.get("name"): [child.tag for child in case] for case in cases}
        assert kinds
        return status, kinds

    return judge


def test_nights_are_judged_by_those_before_without_a_database(tmp_path, judged):
    generator = np.random.default_rng(3)
    for number in range(NIGHTS - 1):
        status, kinds = judged(number, runs.results(generator, BENCHMARKS))
        skipped = sum("skipped" in tags for tags in kinds.values())
        # A few nights must have been before one can be judged; then every figure is.
        early = number < FEWEST
        assert (skipped == len(kinds)) == early, number
        assert status == (ExitStatus.NOTHING if early else ExitStatus.OK), number
    history = SpoolFolder(tmp_path / "history").runs(BOARD)
    assert [entry.run.id for entry in history] == [f"{BOARD}-{n:04}" for n in range(NIGHTS - 1)]
    worse = runs.results(generator, BENCHMARKS, changed={WORSE: 0.7})
    status, kinds = judged(NIGHTS - 1, worse)
    assert status == ExitStatus.FAILED
    (failed,) = [name for name, tags in kinds.items() if "failure" in tags]
    assert all(word in failed for word in WORSE[1:])
