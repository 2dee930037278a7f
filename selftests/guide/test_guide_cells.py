"""The text of figures, there and back."""

import hypothesis
import pytest
from evmperf_guides import rows
from hypothesis import strategies as st

from evmperf.model.units import Unit

CENTS = st.integers(-(10**9), 10**9).map(lambda cents: cents / 100)


@hypothesis.given(st.lists(CENTS, min_size=3, max_size=3).map(sorted), st.integers(0, 2))
def test_a_figure_reads_back_as_it_was_printed(values, decimals):
    low, mean, high = values
    text = rows.figure_text(mean, low, high, decimals)
    cell = rows.figure(text, "m", Unit.SECOND, decimals)
    assert cell.text == ""
    assert rows.figure_text(cell.mean, cell.low, cell.high, decimals) == text


@pytest.mark.parametrize(
    ("text", "mean", "kept"),
    [
        ("205 MB/s", 205.0, "205 MB/s"),
        ("403 KB/s", 0.403, "403 KB/s"),
        ("~11.04", 11.04, "~11.04"),
        ("6", 6.0, "6"),
        ("1.00 [n 20, +1.2 %, 1 outlier]", 1.0, ""),
    ],
)
def test_irregular_cells_keep_their_text(text, mean, kept):
    cell = rows.figure(text, "m", Unit.MEGABYTE_PER_SECOND)
    assert (cell.mean, cell.text) == (pytest.approx(mean), kept)


@pytest.mark.parametrize(
    "text",
    ["fast", "1.0.0", "1 2", "1.00 (min 0.50)", "1.00 (min 2.00, max 3.00)", "-", "nan", "1e3", "5 GHz"],
)
def test_anything_else_is_refused(text):
    with pytest.raises(rows.CellError):
        rows.figure(text, "m", Unit.MEGABYTE_PER_SECOND)


def test_a_unit_in_a_cell_must_be_one_of_its_metric():
    with pytest.raises(rows.CellError, match="measured in us"):
        rows.figure("5 MB/s", "m", Unit.MICROSECOND)
