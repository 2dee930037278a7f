"""The nightly pipeline and the merge request's note, without a GitLab."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml

from evmperf.boards.board import ENV_DIR
from evmperf.commands.cli import main as cli
from evmperf.commands.gitlab.note import TOKEN_VARIABLE, MergeRequest
from evmperf.commands.gitlab.pipeline import Over, real_boards, render
from evmperf.commands.night import plan
from evmperf.model.errors import LabError, UsageError
from evmperf.model.exits import ExitStatus
from selftests.support import programs, web

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


def test_over_labgrid_the_session_holds_its_place_by_itself():
    job = night(job={"benchmarks": "emmc; rm -rf /"})["measure am64x"]
    assert job["script"] == [
        ".venv/bin/pytest --lg-env am64x.yaml --results=results --wait 6h "
        "-k 'emmc; rm -rf /' --run-kind nightly"
    ]
    assert "after_script" not in job
    assert job["variables"] == {"LG_PLACE": "am64x"}
    assert job["artifacts"]["reports"]["junit"] == "results/*/junit.xml"


def test_a_night_ends_with_push_where_a_database_is_named(monkeypatch, capsys):
    monkeypatch.setenv("EVMPERF_INFLUX_URL", "http://influx:8086")
    assert cli.main(["gitlab", "pipeline", "--boards", "am64x"]) == 0
    assert ".venv/bin/evmperf push" in yaml.safe_load(capsys.readouterr().out)["pages"]["script"]


def test_over_lava_the_job_is_submitted_and_read():
    job = night(over=Over.LAVA_NATIVE, release="11.00", images=["http://x/a.wic"])
    assert job["measure am64x"]["script"] == [
        ".venv/bin/evmperf lava submit am64x.yaml --kind native --wait --import --results results "
        "--release 11.00 --image http://x/a.wic"
    ]


@pytest.mark.parametrize("over", list(Over))
def test_each_board_gets_its_image_however_it_is_reached(over):
    data = night(over=over, images=["11.01", "am64x=http://x/am64xx-evm.wic.xz"])
    assert data["measure virtual"]["script"][0].endswith(" --image 11.01")
    assert data["measure am64x"]["script"][0].endswith(" --image http://x/am64xx-evm.wic.xz")
    one = night(over=over, images=["am64x=a.wic"])
    assert "--image" not in one["measure virtual"]["script"][0]


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


WITH_PASSWORD = ({"images": ["http://u:s3cr3tPW@h/a.wic"]}, {"job": {"image": "https://u:s3cr3tPW@h/a.wic"}})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *(({"over": over, **there}, "masked CI variable") for over in Over for there in WITH_PASSWORD),
        ({"job": {"options": ["--token", "glpat-0123456789abcdef"]}}, "masked CI variable"),
        ({"job": {"limit": "3h"}}, "use `evmperf night`"),
        ({"over": Over.LAVA_HOST, "confirm": "30m"}, "--confirm needs --over labgrid"),
    ],
)
def test_what_a_pipeline_cannot_hold_is_refused_and_no_password_repeated(given, said):
    with pytest.raises(UsageError, match=said) as refused:
        night(**given)
    assert "s3cr3tPW" not in str(refused.value)
    assert "glpat" not in str(refused.value)


@pytest.mark.parametrize("reference", ["$PW", "${PW}"])
def test_a_password_is_a_reference_to_a_variable_which_the_shell_of_the_job_reads(reference):
    (line,) = night(images=[f"http://u:{reference}@h/a b.wic"])["measure virtual"]["script"]
    words = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {line}"], env={"PW": "a b"}, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "http://u:a b@h/a b.wic" in words


def test_alarms_are_checked_again_on_the_board_within_the_time_that_is_given():
    job = night(confirm="30m")["judge am64x"]
    assert "--confirm 30m --board am64x.yaml --wait" in job["script"][0]
    assert (job["resource_group"], job["variables"]) == ("board-am64x", {"LG_PLACE": "am64x"})
    assert "--confirm" not in night()["judge am64x"]["script"][0]


def test_everything_is_judged_and_the_guide_written_whatever_failed():
    data = night(against="release:11.00")
    for name in ("judge am64x", "judge virtual", "pages"):
        assert data[name]["when"] == "always"
    assert not any(line.endswith(" push") for line in data["pages"]["script"])
    with_influx = night(push=True)
    assert ".venv/bin/evmperf push" in with_influx["pages"]["script"]
    for one in (data, with_influx):
        guide, *_, site, end = one["pages"]["script"]
        assert "--html public/guide" in guide
        assert site == ".venv/bin/evmperf site -o public --results results --reports copied"
        assert end == "exit ${failed:-0}"
    judging = next(job for name, job in with_influx.items() if name.startswith("judge "))
    assert "--from influx" in judging["script"][0]
    assert "--against release:11.00" in data["judge am64x"]["script"][0]
    assert data["judge am64x"]["allow_failure"] == {"exit_codes": [5, 6]}
    assert data["pages"]["artifacts"]["paths"] == ["public"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--boards", "am65x"], "no board file am65x"),
        (["--over", "ssh"], "one of labgrid, lava-host, lava-native"),
        (["--profile", "slow"], "Invalid enum value 'slow' - at `boards[0].profile`"),
        (["--repeat", "5", "--over", "lava-host"], "LAVA jobs measure once"),
        (["--images", "a.wic b.wic"], "a.wic and b.wic"),
        (["--images", "am64x=a.wic am64x=b.wic"], "am64x is given two images"),
    ],
)
def test_a_night_that_cannot_be_is_refused(arguments, said, capsys):
    assert cli.main(["gitlab", "pipeline", *arguments]) == ExitStatus.USAGE
    assert said in capsys.readouterr().err


def test_the_pipelines_variables_are_the_commands(monkeypatch, capsys, tmp_path):
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


def test_a_missing_token_or_gitlab_is_said(gitlab, monkeypatch):
    variables = {"CI_API_V4_URL": "http://127.0.0.1:9", "CI_PROJECT_ID": "7"}
    variables["CI_MERGE_REQUEST_IID"] = "3"
    with pytest.raises(UsageError, match=f"{TOKEN_VARIABLE} is not set"):
        MergeRequest.of_pipeline(variables)
    request = MergeRequest.of_pipeline({**variables, TOKEN_VARIABLE: "x"})
    with pytest.raises(LabError, match=r"GitLab is not reached .*CI_API_V4_URL"):
        request.write("verdict", "same")
