"""Outputs of real boards and machines: the number that a person read there, or a refusal."""

import pytest

from evmperf.benchmarks.tools import alsa
from evmperf.model.errors import RefusedOutput
from selftests.support import real_tools, seeds
from selftests.support.recordings import approximately

CASES = real_tools.cases()
pytestmark = seeds.needs("real/tools")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_real_output_gives_its_number_or_is_refused_with_the_reason(case):
    if case.expected is not None:
        assert case.parse() == approximately(case.expected)
        return
    with pytest.raises(RefusedOutput, match=case.refused):
        case.parse()


def test_a_real_account_of_a_stream_with_lost_data_is_refused():
    status = (real_tools.folder() / "alsa-1.txt").read_text().replace("  # (new row)", "")
    said = "Playing raw data '/dev/zero' : Signed 16 bit Little Endian, Rate 48000 Hz, Stereo\n"
    params = (
        "access: RW_INTERLEAVED\nformat: S16_LE\nsubformat: STD\nchannels: 2\n"
        "rate: 48000 (48000/1)\nperiod_size: 480\nbuffer_size: 1920\n"
    )
    running = f"state: RUNNING\n{status}"
    with pytest.raises(RefusedOutput, match="3 XRUNs"):
        alsa.throughput(said, f"{params}\n{running}\n{running}", 48000, 480)
    with pytest.raises(RefusedOutput, match="state was None"):
        alsa.throughput(said, f"{params}\n{status}\n{status}", 48000, 480)


def test_every_real_output_is_read():
    there = {path.stem for path in real_tools.folder().glob("*.txt")}
    read = {name for case in CASES for name in real_tools.files_of(case)}
    assert there - read == set(real_tools.NOT_USED)
