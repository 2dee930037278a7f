"""An alarm confirmed, or taken back, from end to end on a virtual EVM, with --all-bisections."""

import pytest

from selftests.instruments import confirmation

pytestmark = [pytest.mark.virtual_evm, pytest.mark.long_bisection]
NIGHTS = 8


def test_a_slower_image_is_confirmed_and_bisection_is_the_next_step(tmp_path):
    outcome = confirmation.alarm(tmp_path, NIGHTS)
    assert outcome.confirmed, outcome.note


def test_an_alarm_of_a_busy_host_is_taken_back(tmp_path):
    outcome = confirmation.alarm(tmp_path, NIGHTS, change=False)
    assert outcome.dismissed, outcome.note
