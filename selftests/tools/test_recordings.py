"""Real outputs of real tools, whole and damaged, and those of real boards beside the checkout."""

import pytest

from evmperf.benchmarks.tables import audio
from evmperf.model.errors import RefusedOutput
from selftests.instruments import mutations
from selftests.support import real_tools, seeds
from selftests.support.recordings import DATA, OTHERS, all_recordings, approximately

RECORDINGS = all_recordings()
REAL = real_tools.cases()


@pytest.mark.parametrize("recording", [*RECORDINGS, *REAL], ids=lambda r: r.name)
def test_a_recording_gives_its_number_or_is_refused_with_the_reason(recording):
    if recording.expected is not None:
        assert recording.parse() == approximately(recording.expected)
        return
    with pytest.raises(RefusedOutput, match=recording.refused) as refusal:
        recording.parse()
    assert refusal.value.raw in ("".join(recording.texts), *recording.texts)


def test_every_tool_with_a_parser_has_a_recording():
    tools = {r.parser.split(":")[0].rsplit(".", 1)[1] for r in RECORDINGS}
    folder = DATA.parents[1] / "evmperf" / "benchmarks"
    reading = {path.stem for path in folder.glob("*/*.py") if "tools._checks import" in path.read_text()}
    # What a desk reads of the last boot, selftests/desk measures.
    assert reading - {"desk"} <= tools


def test_every_recorded_text_is_used():
    used = {text for recording in RECORDINGS for text in recording.texts}
    outputs = [path for path in DATA.glob("*/*.txt") if path.parent.name not in OTHERS]
    assert [path.name for path in outputs if path.read_text() not in used] == []


@seeds.needs("real/tools")
def test_a_real_account_of_a_stream_with_lost_data_is_refused():
    status = (real_tools.folder() / "alsa-1.txt").read_text().replace("  # (new row)", "")
    said = "Playing raw data '/dev/zero' : Signed 16 bit Little Endian, Rate 48000 Hz, Stereo\n"
    params = (
        "access: RW_INTERLEAVED\nformat: S16_LE\nsubformat: STD\nchannels: 2\n"
        "rate: 48000 (48000/1)\nperiod_size: 480\nbuffer_size: 1920\n"
    )
    running = f"state: RUNNING\n{status}"
    with pytest.raises(RefusedOutput, match="3 XRUNs"):
        audio.throughput(said, f"{params}\n{running}\n{running}", 48000, 480)
    with pytest.raises(RefusedOutput, match="state was None"):
        audio.throughput(said, f"{params}\n{status}\n{status}", 48000, 480)


@seeds.needs("real/tools")
def test_every_real_output_is_read():
    there = {path.stem for path in real_tools.folder().glob("*.txt")}
    read = {name for case in REAL for name in real_tools.files_of(case)}
    assert there - read == set(real_tools.NOT_USED)


_PLACES = 12
"""Of each text, for each kind of damage."""


def test_no_damage_makes_another_number(capsys):
    """Bytes that change a digit cannot be told from another result by a parser; the archive's checksum
    guards against those (see test_shellstep).
    """
    status = mutations.main(["--places", str(_PLACES)])
    printed = capsys.readouterr().out
    assert status == 0, printed
    total = next(line.split() for line in printed.splitlines() if line.startswith("all "))
    calls, own, refused, wrong, once = map(int, total[1:])
    assert calls == own + refused + wrong + once
    assert calls > 100 * len({r.parser for r in all_recordings()})


def test_a_wrong_number_is_counted_and_ends_the_program_with_1(monkeypatch, capsys):
    (recording,) = [r for r in all_recordings() if r.name == "lmbench/memory-1m"]
    monkeypatch.setattr(mutations, "subjects", lambda: [recording])
    monkeypatch.setattr(mutations, "ONCE", {})
    assert mutations.main([]) == 1
    assert "lmbench/memory-1m: character lost at" in capsys.readouterr().out
