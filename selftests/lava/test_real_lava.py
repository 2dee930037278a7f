"""Jobs on a real LAVA and virtual EVMs: submitted, run, judged, and read back."""

from __future__ import annotations

import functools
import http.server
import subprocess
from pathlib import Path

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.commands.app import lavajobs
from evmperf.commands.cli import main as cli
from evmperf.commands.lava import render, selection
from evmperf.commands.lava.selection import JobKind
from evmperf.commands.lava.server import TOKEN_VARIABLE, URL_VARIABLE, LavaServer
from evmperf.measure.hostload import slowness
from evmperf.measure.runs.spool import read_results, read_run
from evmperf.model.exits import ExitStatus
from evmperf.model.results import Result
from selftests.support import cardimage, programs, web
from selftests.support import lavalab as labs
from selftests.support.spools import cases_of

pytestmark = pytest.mark.virtual_evm

long = pytest.mark.long_lava_job
KEYWORD = "emmc_vfat"
BOARD = boards.load(boards.find("virtual"))
DEADLINE_S = 900.0


def definition(kind=JobKind.NATIVE, keyword=KEYWORD, board=BOARD):
    chosen = selection.select(board, kind, "quick", keyword)
    return render.render(board, chosen, render.JobRequest(kind, keyword))


def identity(result: Result):
    """What makes figures comparable: all but when and where they were measured."""
    samples = [(s.metric, s.unit, s.repetition) for s in result.samples]
    conditions = {k: v for k, v in result.conditions.items() if k != "fetched_again"}
    return (
        result.benchmark,
        result.version,
        result.driver,
        result.case,
        dict(result.params),
        result.profile,
        dict(result.tools),
        conditions,
        str(result.status),
        sorted(samples),
    )


def lavacli(lab, *words: str) -> None:
    """LAVA's own command, out of the lab's packages; the token is in a file there."""
    (pid,) = Path(f"/proc/{lab.pid}/task/{lab.pid}/children").read_text().split()
    config = labs.folder() / "shared/config/lavacli.yaml"
    config.parent.mkdir(exist_ok=True)
    entry = {"uri": f"{lab.url}/RPC2", "username": "evmperf", "token": lab.token}
    config.write_text(yaml.safe_dump({"default": entry}))
    done = subprocess.run(
        [
            "nsenter",
            f"--mount=/proc/{pid}/ns/mnt",
            f"--root=/proc/{pid}/root",
            "env",
            "--chdir=/",
            "XDG_CONFIG_HOME=/lab/config",
            "PATH=/usr/bin:/bin",
            "lavacli",
            *words,
        ],
        capture_output=True,
        text=True,
        timeout=60 * slowness(),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def judged(server: LavaServer, number: int, health: str):
    job = server.wait(number, DEADLINE_S * slowness(), lambda job: None)
    assert job.health == health
    return lavajobs.judge(server, job)


def test_lavas_own_client_takes_a_job(lab) -> None:
    (labs.folder() / "shared/job.yaml").write_text(definition())
    lavacli(lab, "jobs", "validate", "/lab/job.yaml")


def test_what_the_server_refuses_is_said(lab, server, monkeypatch, tmp_path, capsys) -> None:
    spoilt = yaml.safe_load(definition())
    spoilt["metadata"] = {"evmperf": {"a": 1}}
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(spoilt, sort_keys=False))
    monkeypatch.setenv(URL_VARIABLE, lab.url)
    monkeypatch.setenv(TOKEN_VARIABLE, lab.token)

    def said(*words: str) -> str:
        assert cli.main(["lava", *words]) == ExitStatus.USAGE
        return capsys.readouterr().err

    assert "Problem with submitted job data" in said("submit", str(file))
    assert "has no job 4711" in said("wait", "4711")
    assert "has no job 4711" in said("import", "4711", "--results", str(tmp_path / "r"))
    monkeypatch.setenv(TOKEN_VARIABLE, "0123expired")
    text = said("submit", "virtual", "-k", KEYWORD)
    assert "does not accept the token (403)" in text
    assert "0123expired" not in text


@long
def test_the_same_case_is_the_same_in_all_three_ways(lab, server, results, capsys) -> None:
    words = ["--wait", "--import", "--results", str(results), "-k", KEYWORD]
    assert cli.main(["lava", "submit", "virtual", "--kind", "native", *words]) == 0
    assert cli.main(["lava", "submit", "virtual", "--kind", "host", *words]) == 0
    assert "keeps and pushes its results itself" in capsys.readouterr().out
    desk = results.parent / "desk"
    done = programs.pytest(
        "--lg-env",
        labs.folder() / "boards/virtual.yaml",
        "-k",
        KEYWORD,
        f"--results={desk}",
        timeout_s=DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout
    ways = {"native": results, "host": labs.folder() / "results", "desk": desk}
    measured = {}
    for way, folder in ways.items():
        (run,) = folder.glob("*/run.json")
        measured[way] = cases_of(run.parent)
    assert [identity(r) for r in measured["native"]] == [identity(r) for r in measured["desk"]]
    assert [identity(r) for r in measured["host"]] == [identity(r) for r in measured["desk"]]


@long
def test_a_kernel_panic_is_the_boards(lab, server, results, capsys) -> None:
    data = yaml.safe_load(definition())
    test = data["actions"][-1]["test"]
    test["timeout"] = {"seconds": 90}
    steps = test["definitions"][0]["repository"]["run"]["steps"]
    steps[3] = "echo c >/proc/sysrq-trigger"
    (number,) = server.submit(yaml.safe_dump(data, sort_keys=False))
    assert judged(server, number, "Incomplete") == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert "Kernel panic" in last
    assert "(board)" in last
    assert cli.main(["lava", "import", str(number), "--results", str(results)]) == 1
    (folder,) = results.iterdir()
    kinds = {f.kind for r in read_results(folder) for f in r.failures}
    assert kinds == {"board"}
    assert read_results(folder)[0].status == "measured"


@long
def test_boot_times_are_read_from_the_log(lab, results) -> None:
    words = ["--kind", "boot", "-k", "boot_time", "--wait", "--import", "--results", str(results)]
    assert cli.main(["lava", "submit", "virtual", *words]) == 0
    (folder,) = results.iterdir()
    for result in cases_of(folder):
        assert result.status == "measured"
        assert len(result.values("boot_time")) == 3


VARIANT = "virtual-sd"


@pytest.fixture
def card_lab(tmp_path_factory):
    """A LAVA whose own board boots from a card behind a switch."""
    with labs.started(tmp_path_factory, VARIANT) as lab:
        yield lab


@pytest.fixture
def published(tmp_path):
    """Two releases on a web server: their URLs."""
    folder = tmp_path / "published"
    folder.mkdir()
    names = [f"{cardimage.name(VARIANT, number)}.wic.zst" for number in (1, 2)]
    for number, name in enumerate(names, 1):
        cardimage.build(VARIANT, number, folder / name, print)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with web.serving(handler) as server:
        yield [f"{server.url}/{name}" for name in names]


def submit(url, results):
    """Measure an image by a native job; its exit status."""
    words = ["--image", url, "-k", KEYWORD, "--wait", "--import", "--results", str(results)]
    return cli.main(["lava", "submit", VARIANT, *words])


@long
def test_a_native_job_measures_the_image_it_was_given_or_nothing(card_lab, published, results, capsys):
    assert submit(published[0], results) == 0, capsys.readouterr()
    (folder,) = results.iterdir()
    run = read_run(folder)
    assert run.release == cardimage.name(VARIANT, 1)
    said = run.facts.provisioned
    assert said["name"] == published[0].rpartition("/")[2]
    assert said["uboot"] == run.facts.uboot == "U-Boot 2025.01 (Jan 01 2025 - 00:00:00 +0000)"
    measured = read_results(folder)
    assert measured
    assert all(result.status == "measured" for result in measured)
    # A flasher that does nothing: the card still holds the first release.
    (labs.folder() / "shared/evmperf").write_text("#!/bin/sh\n")
    assert submit(published[1], results) == ExitStatus.LAB_BROKEN
    (other,) = set(results.iterdir()) - {folder}
    assert read_run(other).exit_status == ExitStatus.LAB_BROKEN
    assert not any(result.samples for result in read_results(other))
