"""What pytest-html shows of a session."""

from evmperf.model.errors import Kind
from evmperf.model.results import Failure, Result, Sample, Status
from pytest_evmperf import report


def test_what_a_board_said_is_text_in_the_figures():
    hostile = "<script>alert(1)</script>"
    samples = (Sample("write_throughput", 1.5, "MB/s", 0, 1),)
    failures = (Failure(Kind.TOOL, hostile, "write"),)
    result = Result("emmc_ext4", 1, "emmc", hostile, {}, "quick", Status.FAILED, samples, failures)
    page = report._html(None, [result])
    assert "(MB/s)" in page
    assert " 1.50 " in page
    assert "<li>tool: write &lt;script&gt;" in page
    assert "<script" not in page
