"""A virtual EVM whose image has TI's own programs, compiled of ../shared: they measure, and say so."""

import pytest

from selftests.support import seeds, tiprograms, virtualbench
from selftests.support.sessions import whole

pytestmark = [pytest.mark.virtual_evm, seeds.needs("real/ltp-ddt")]

PERIOD = 256
"""Frames: TI's program has a buffer of 1024."""


@pytest.fixture(scope="module")
def ti_board(own_state, tmp_path_factory):
    """A board file of a running virtual EVM with TI's programs."""
    folder = tmp_path_factory.mktemp("ti")
    (folder / "recipes").mkdir()
    tiprograms.write_recipe(folder / "recipes", folder / "cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVMPERF_RECIPES", str(folder / "recipes"))
        with virtualbench.running(tiprograms.VARIANT) as bench:
            file = virtualbench.board_file(bench, "virtual", folder)
            text = file.read_text().replace("virtual: virtual\n", f"virtual: {tiprograms.VARIANT}\n")
            file.write_text(text.replace("period_frames: 1024", f"period_frames: {PERIOD}"))
            yield file


def measured(file, folder, select, *options):
    results = whole(file, folder, select, *options).measured()
    assert {result.status for result in results} == {"measured"}
    return results


def test_tis_program_of_file_systems_measures_where_it_is(ti_board, tmp_path):
    files = measured(ti_board, tmp_path, "emmc_ext4 and not fio")
    assert len(files) == 5
    assert {tool for result in files for tool in result.tools} == {"filesystem_tests", "mkfs.ext4"}
    assert not any("variant" in result.conditions for result in files)
    # One execution: the first row has the raw outputs of all.
    assert len({result.raw for result in files}) == 1


@pytest.mark.alone
def test_tis_programs_of_networks_and_audio_measure_where_they_are(ti_board, tmp_path):
    select = "(eth_icssg_udp_egress_0loss and 1518) or (audio_playback and 32000)"
    results = measured(ti_board, tmp_path, select)
    (datagrams,) = (result for result in results if "udp" in result.benchmark)
    (played,) = (result for result in results if result.benchmark == "audio_playback")
    assert {"netperf", "netperf-b"} <= set(datagrams.tools)
    assert datagrams.conditions["trials"]
    assert set(played.tools) == {"alsa_perf_tests"}


def test_evmperfs_way_is_a_word_away(ti_board, tmp_path):
    results = measured(ti_board, tmp_path, "emmc_ext4 and not fio and 102400", "--tool=own")
    assert "dd" in results[0].tools
    assert results[0].conditions["variant"] == "dd from memory, over the same file"
