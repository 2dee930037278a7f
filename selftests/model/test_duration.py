import pytest

from evmperf.model.errors import UsageError
from evmperf.model.units import seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1.5h", 5400), ("1d", 86400)],
)
def test_a_duration_is_read(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["30", "m", "30 m", "-5m", "soon"])
def test_anything_else_is_refused(text):
    with pytest.raises(UsageError, match="is not a duration"):
        seconds(text)
