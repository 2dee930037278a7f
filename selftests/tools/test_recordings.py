"""Real outputs of real tools, whole and damaged: the right number, or refused with the reason."""

import pytest

from evmperf.model.errors import RefusedOutput
from selftests.support.recordings import DATA, OTHERS, all_recordings, approximately

RECORDINGS = all_recordings()


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.name)
def test_a_recording_gives_its_number_or_is_refused_with_the_reason(recording):
    if recording.expected is not None:
        assert recording.parse() == approximately(recording.expected)
        return
    with pytest.raises(RefusedOutput, match=recording.refused) as refusal:
        recording.parse()
    assert refusal.value.raw in ("".join(recording.texts), *recording.texts)


def test_every_tool_with_a_parser_has_a_recording():
    tools = {r.parser.split(":")[0].rsplit(".", 1)[1] for r in RECORDINGS}
    folder = DATA.parents[1] / "evmperf" / "benchmarks" / "tools"
    # perf's samples show where time goes, and are no figures; selftests/tools/test_perf.py reads them.
    assert {path.stem for path in folder.glob("[!_]*.py")} - {"perf"} <= tools


OUTPUTS = sorted(path for path in DATA.glob("*/*.txt") if path.parent.name not in OTHERS)


@pytest.mark.parametrize("text", OUTPUTS, ids=lambda path: path.stem)
def test_every_recorded_text_is_used(text):
    assert any(text.read_text() in recording.texts for recording in RECORDINGS)
