"""Audio: the kernel's folder of a device, and rates that cannot pass for another."""

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.tables.audio import FRAME_BITS, RATES
from evmperf.model.errors import RefusedOutput, UsageError
from selftests.support.boardfiles import fake_board
from selftests.support.steps import step_of

PLAYBACK = catalogue.benchmark("audio_playback")


def command(tmp_path, device):
    alsa = {"playback": device, "period_frames": 64}
    return step_of(PLAYBACK.name, board=fake_board(tmp_path / "board.yaml", "alsa", alsa=alsa)).command


@pytest.mark.parametrize(
    ("device", "folder"),
    [
        ("hw:0,0", "card0/pcm0p/sub0"),
        ("hw:1,2", "card1/pcm2p/sub0"),
        ("hw:1", "card1/pcm0p/sub0"),
        ("hw:Codec,1", "Codec/pcm1p/sub0"),
    ],
)
def test_the_stream_is_watched_where_the_kernel_shows_it(tmp_path, device, folder):
    assert f"/proc/asound/{folder}/status" in command(tmp_path, device)


@pytest.mark.parametrize("device", ["plughw:0,0", "default", "hw:", "hw:0,x", "hw"])
def test_a_device_with_conversion_or_without_a_card_is_refused(tmp_path, device):
    with pytest.raises(UsageError, match="is not a device without conversion"):
        command(tmp_path, device)


def test_each_row_refuses_the_throughput_of_every_other_rate():
    for case in PLAYBACK.cases("full"):
        metric = PLAYBACK.metric("throughput", case)
        for rate in RATES:
            if str(rate) == case.label:
                metric.check(rate * FRAME_BITS)
            else:
                with pytest.raises(RefusedOutput, match="not plausible"):
                    metric.check(rate * FRAME_BITS)
