"""Facts of a run: one typed struct, whose JSON keeps what it does not know."""

import json
from pathlib import Path

import pytest

from evmperf.model.facts import Facts
from evmperf.model.run import Run

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
