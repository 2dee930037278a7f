"""Facts of a run: one typed struct, whose JSON keeps what it does not know; who was busy is said to be."""

import json
from pathlib import Path

import pytest

from evmperf.commands.cli.main import main
from evmperf.model import ended
from evmperf.model.errors import Kind
from evmperf.model.facts import Facts
from evmperf.model.results import Failure, Status
from evmperf.model.run import Run
from selftests.support import spools

OLD = sorted((Path(__file__).parents[1] / "data").rglob("run.json"))


@pytest.mark.parametrize("file", OLD, ids=lambda file: file.parent.name)
def test_an_old_run_is_written_as_it_was_read(file):
    said = json.loads(file.read_text())
    again = Run.from_dict(said).to_dict()
    assert again["facts"] == said["facts"]
    assert said["facts"]["kernel"] == Run.from_dict(said).facts.kernel


def test_what_is_unknown_or_of_another_type_is_kept_and_not_believed():
    said = {"kernel": "6.12", "cpus": "four", "other": 1, "rack": ["b", 3], "virtual": False}
    facts = Facts.from_dict(said)
    assert (facts.kernel, facts.cpus, facts.virtual) == ("6.12", None, False)
    assert facts.other == {"cpus": "four", "other": 1, "rack": ["b", 3]}
    assert facts.to_dict() == said


def test_later_facts_go_before_earlier_ones():
    facts = Facts(kernel="6.12", cpus=4) | Facts.from_dict({"kernel": "6.18", "rack": "b3"})
    assert facts.to_dict() == {"kernel": "6.18", "cpus": 4, "rack": "b3"}


BUSY = {"cpus": 2, "found": {"load": "27.10", "uptime_s": "5000"}}


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (BUSY, ["load 27.1 on 2 CPUs"]),
        ({"cpus": 8, "found": {"load": "0.31"}}, []),
        ({"host_load": 5.0}, ["5.0 processes a processor", "boot times among them"]),
        ({"host_load": 5.0, "virtual": True}, ["virtual board had to wait"]),
        ({"host_load": 1.2, "found": {"load": "1e9999"}}, []),
        (BUSY | {"host_load": 2.0}, ["27.1", "2.0 processes"]),
        ({}, []),
    ],
)
def test_what_was_busy_is_said(facts, says):
    busy = Facts.from_dict(facts).busy
    assert bool(busy) == bool(says)
    assert all(words in busy for words in says)


def test_report_why_and_show_say_it_first(tmp_path, capsys):
    run = spools.a_run(1, id="evm-1", facts=BUSY)
    spools.write(tmp_path, run, [spools.a_result(run, 0)])
    says = "load 27.1 on 2 CPUs"
    assert main(["why", "last", "--results", str(tmp_path)]) == 0
    assert says in capsys.readouterr().out.splitlines()[0]
    assert main(["show", "last", "--results", str(tmp_path)]) == 0
    assert says in capsys.readouterr().out.partition("\n\n")[0]
    assert main(["show", "--report", "--results", str(tmp_path)]) == 0
    header = (tmp_path / "evm-1" / "report.html").read_text().partition("<header>")[2]
    assert header.index("</h1>") < header.index(says) < header.index('class="counts"')


def test_the_first_failure_of_a_case_is_named_with_its_cycle():
    run = spools.a_run(1)
    failures = tuple(Failure(Kind.BOARD, "no prompt", f"cycle {n}") for n in (5, 12))
    result = spools.a_result(run, 0, status=Status.PARTIAL, failures=failures)
    sentence = ended.of("evm", [result], 1).sentence
    assert "0 of 1 case measured on evm, 1 in part" in sentence
    assert "cycle 5: no prompt (board)" in sentence
