"""What a night asks to be made of its runs, without the night."""

import pytest

from evmperf.commands.app import publishing
from evmperf.commands.app.publishing import WriteGuide
from evmperf.model.errors import UsageError
from selftests.support import spools


def test_a_board_that_was_measured_in_u_boot_alone_does_not_cost_the_guide(tmp_path):
    results = tmp_path / "results"
    for number, said in enumerate(({}, {"board": "other", "os": "", "release": ""})):
        run = spools.a_run(number, **said)
        spools.write(results, run, [spools.a_result(run, case="102400")])
    output = tmp_path / "guide.rst"
    text, *_ = publishing.guide(WriteGuide(release="newest", source=str(results), output=str(output)))
    assert output.read_text() == text
    assert "11.00" in text
    assert "other" in text
    with pytest.raises(UsageError, match=r"12\.00"):
        publishing.guide(WriteGuide(release="12.00", source=str(results), output=str(output)))
