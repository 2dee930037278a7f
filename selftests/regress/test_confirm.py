"""Alarms checked again: which A/B is asked for, and what it makes of the verdicts."""

import pytest
from msgspec import structs

from evmperf.judge import ab, confirm, rounds
from evmperf.model.errors import UsageError
from evmperf.model.facts import Facts
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.run import Run
from evmperf.model.verdict import Judgement, Outcome, Verdict
from evmperf.publish.report import verdicts as report
from selftests.regress.rounds import FakeSessions, noisy
from selftests.support import runs

GOOD = {"name": "a.wic", "source": "/images/a.wic", "content_sha256": "aa"}
BAD = {"name": "b.wic", "source": "/images/b.wic", "content_sha256": "bb"}


def provisioned(name, image):
    return Run(name, "evm", "full", facts=Facts(provisioned=image or {}))


def alarm(case, metric="write_throughput"):
    key = Key("emmc_ext4", case, metric)
    return Verdict(key, Outcome.WORSE, "MB/s", Direction.HIGHER, 45.0, 50.0)


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """A run on disk, of which two cases are worse than before."""
    generator = runs.history(tmp_path, nights=0)
    folder = runs.write(tmp_path, runs.results(generator), number=1, provisioned=BAD)
    return folder, Judgement(folder.name, "evm", "last:30", (alarm("102400"), alarm("1048576")))


@pytest.mark.parametrize(("image", "told"), [(BAD, "ran the same image"), (None, "without --image")])
def test_the_same_or_no_image_is_not_what_changed(judged, image, told):
    with pytest.raises(UsageError, match=f"run-0 .*{told}"):
        confirm.asked(*judged, provisioned("run-0", image), "evm.yaml", 600)


def test_only_what_is_worse_is_measured_again(judged):
    folder, judgement = judged
    asked = confirm.asked(folder, judgement, provisioned("run-0", GOOD), "evm.yaml", 600)
    assert asked.boots == 1
    assert asked.sides == {"a": ["image:/images/a.wic"], "b": ["image:/images/b.wic"]}
    assert asked.select == "emmc_ext4"
    assert asked.budget_s == 600
    # pytest's -k finds the second in the name of the first.
    assert {"emmc_ext4_fio_1g/4k", "emmc_ext4/262144"} <= set(asked.leave_out)
    assert not {"emmc_ext4/102400", "emmc_ext4/1048576"} & set(asked.leave_out)
    for key in (v.key for v in judgement.verdicts):
        assert rounds.matches(key, asked.metrics)


@pytest.mark.parametrize(
    ("budget_s", "expected"),
    [
        (36000, {"102400": (Outcome.WORSE, "confirmed by"), "1048576": (Outcome.SAME, "not conf")}),
        (300, {"102400": (Outcome.WORSE, "not settled"), "1048576": (Outcome.WORSE, "not sett")}),
    ],
)
def test_an_ab_confirms_an_alarm_or_takes_it_back(judged, budget_s, expected):
    folder, judgement = judged
    asked = confirm.asked(folder, judgement, provisioned("run-0", GOOD), "evm.yaml", budget_s)
    place = folder.parent / asked.id
    place.mkdir()
    figures = noisy({"102400": -0.10, "1048576": 0.0})

    def by_image(wanted):
        return figures(structs.replace(wanted, vary=wanted.vary if "b.wic" in wanted.vary[0] else ()))

    sessions = FakeSessions(place, by_image)
    settled = confirm.settled(judgement, ab.go_on(place, asked, sessions), "run-0", "here/evm.yaml")
    found = {v.key.case: (v.outcome, v.why) for v in settled.verdicts}
    for case, (outcome, why) in expected.items():
        assert found[case][0] is outcome
        assert found[case][1].startswith(why)
    assert "the image of run-0" in settled.sentence()
    note = report.as_markdown(settled).replace("\\", "")
    assert expected["102400"][1] in note
    named = "evmperf ab here/evm.yaml --git-bisect --a image:GOOD --b image:BUILT --metric emmc_ext4/102400/"
    assert (named in note) == expected["102400"][1].startswith("confirmed")
