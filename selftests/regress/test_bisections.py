"""Bisections from end to end on a virtual EVM, with --all-bisections.

A short one still takes some twenty boots: good and bad alone are measured four times each before
their difference is believed.
"""

import pytest

from selftests.regress import bisections

pytestmark = pytest.mark.virtual_evm


def named(kind, folder, versions, bad):
    _, bisect = bisections.KINDS[kind]
    outcome = bisect(folder, versions, bad)
    assert outcome.found, outcome.table()
    return outcome


@pytest.mark.long_bisection
def test_git_bisect_run_goes_around_a_commit_that_does_not_boot(tmp_path):
    outcome = named("commits", tmp_path, 4, 3)
    answers = sorted(step.answer for step in outcome.state.steps)
    assert answers == ["cannot tell", "good"]


@pytest.mark.long_bisection
def test_the_slower_one_of_three_provisioned_images_is_named(tmp_path):
    named("boot", tmp_path, 3, 2)


@pytest.mark.long_bisection
@pytest.mark.parametrize(("kind", "bad"), [("commits", 10), ("boot", 5), ("emmc", 3)])
def test_the_whole(kind, bad, tmp_path):
    versions, _ = bisections.KINDS[kind]
    outcome = named(kind, tmp_path, versions, bad)
    assert len(outcome.state.steps) <= 8
