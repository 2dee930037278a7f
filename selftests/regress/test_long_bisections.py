"""Bisections from end to end on a virtual EVM, with --all-bisections."""

import pytest

from selftests.instruments import bisections

pytestmark = [pytest.mark.virtual_evm, pytest.mark.long_bisection]


def named(kind, folder, versions, bad):
    _, bisect = bisections.KINDS[kind]
    outcome = bisect(folder, versions, bad)
    assert outcome.found, outcome.table()
    return outcome


def test_git_bisect_run_goes_around_a_commit_that_does_not_boot(tmp_path):
    outcome = named("commits", tmp_path, 5, 4)
    assert {step.answer for step in outcome.state.steps} == {"cannot tell", "good"}


def test_the_slower_one_of_three_provisioned_images_is_named(tmp_path):
    named("boot", tmp_path, 3, 2)


@pytest.mark.parametrize(("kind", "bad"), [("commits", 10), ("boot", 5), ("emmc", 3)])
def test_the_whole(kind, bad, tmp_path):
    versions, _ = bisections.KINDS[kind]
    outcome = named(kind, tmp_path, versions, bad)
    assert len(outcome.state.steps) <= 8
