"""What published guides give: `python -m selftests.instruments.guide_reading`."""

import pytest
from evmperf_guides import importer

from selftests.guide.test_guide_import import HEAD, table
from selftests.instruments import guide_reading
from selftests.support import seeds

GUIDES = seeds.real("guides", "*.rst")
LEAST_SAME = 0.995


@pytest.mark.skipif(not GUIDES, reason="no shared/real/guides beside the checkout")
def test_published_figures_come_back_or_are_refused_with_a_reason():
    said = guide_reading.truth()
    files = (*seeds.files(), *GUIDES)
    counts = [guide_reading.counted(file, said.get(file.name, ("", ""))) for file in files]
    assert [count.wrong for count in counts if count.wrong] == []
    assert not any(count.refused["without a reason"] for count in counts)
    total = sum(count.total for count in counts)
    assert total > 48_000
    assert sum(count.same for count in counts) > LEAST_SAME * total


@pytest.mark.skipif(not GUIDES, reason="no shared/real/guides beside the checkout")
def test_no_cell_of_a_row_without_some_boards_is_read_as_another_board_s():
    counts = [guide_reading.shortened(guide) for file in GUIDES for guide in importer.load(file)]
    assert [wrong for _, wrong in counts if wrong] == []
    assert sum(placed for placed, _ in counts) > 3_000


def test_a_figure_that_comes_back_otherwise_is_wrong(tmp_path, monkeypatch):
    file = tmp_path / "guide.rst"
    file.write_text(HEAD + table(['"add (MB/s)","1.00"', '"copy (MB/s)","fast"', '"fly (MB/s)","2"']))
    count = guide_reading.counted(file)
    assert (count.same, len(count.wrong), count.refused.total()) == (1, 0, 1)
    monkeypatch.setattr("evmperf.publish.guide.writer.cell_text", lambda slot, figure: "9.99")
    assert guide_reading.counted(file).wrong
