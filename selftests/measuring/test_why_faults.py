"""`evmperf why` names faults that were made on purpose, and none on a healthy board."""

from __future__ import annotations

from pathlib import Path

import pytest

from selftests.instruments import why_faults

pytestmark = [pytest.mark.virtual_evm, pytest.mark.long_why]


def test_nine_of_ten_faults_are_named_first_and_none_on_a_healthy_board(
    own_state: Path, tmp_path: Path
) -> None:
    healthy, *faulty = why_faults.run(tmp_path)
    assert healthy.is_right, healthy.first
    wrong = [(found.fault and found.fault.name, found.first) for found in faulty if not found.is_right]
    assert len(faulty) >= 10
    assert len(wrong) <= len(faulty) / 10, wrong
