"""What the record of a board and the order of a section tell of a table."""

import pytest

from evmperf.model.figures import Key
from evmperf.published import steady
from selftests.guide.test_guide_import import guide, table

ONE, OTHER = "am574x-idk", "am654x-idk"
SECTION = "Ethernet Driver - CPSW CPSW2G NETCP"
KEY = '"UDP Datagram Size(bytes)"'


def columns(*boards):
    titles = ("Throughput (Mbits/sec)", "Packets Per Second (kpps) ")
    return ",".join([KEY, *(f'"{board}: {title}"' for board in boards for title in titles)])


def short(monkeypatch, row, **means):
    """A table of two boards with one row, where other guides have these means of each."""

    def history(board, os, without=""):
        mean = means.get("one" if board == ONE else "other")
        metrics = (("throughput", "Mbit/s"), ("kpps", "kpps"))
        return {
            Key("eth_udp_egress", "64", metric): {(n,): (f"{n}.00", unit, mean + n) for n in range(3)}
            for metric, unit in metrics
            if mean
        }

    monkeypatch.setattr(steady, "history", history)
    return guide(table([row], columns(ONE, OTHER), "UDP Throughput Egress", SECTION))


@pytest.mark.parametrize(
    ("means", "figure", "whose"),
    [
        ({"one": 50.0, "other": 100.0}, "101.00", [OTHER]),
        ({"one": 50.0, "other": 100.0}, "51.00", [ONE]),
        ({"one": 50.0, "other": 100.0}, "70.00", []),
        ({"one": 100.0, "other": 100.0}, "101.00", []),
        ({"other": 100.0}, "101.00", []),
        ({}, "101.00", []),
    ],
)
def test_a_short_row_is_the_board_s_that_has_such_figures_elsewhere(monkeypatch, means, figure, whose):
    imported = short(monkeypatch, f'"64","{figure}","{figure}"', **means)
    assert list(imported.results) == whose
    said = imported.remarks if whose else imported.unknown
    assert any("3 cells, fewer than the 5 of its header" in problem.reason for problem in said)


def test_a_row_with_more_cells_than_its_header_stays_anybody_s(monkeypatch):
    row = '"64","51.00","51.00","101.00","101.00","101.00"'
    assert short(monkeypatch, row, one=50.0, other=100.0).results == {}


@pytest.mark.parametrize(("count", "read"), [(1, []), (2, ["eth_udp_egress", "eth_udp_ingress"]), (3, [])])
def test_as_many_tables_without_captions_as_they_may_be_stand_in_order(count, read):
    rows = [f'"{size}","{size}.00","4.00"' for size in (64, 128, 256)]
    one = table(rows, columns(ONE), section=SECTION).partition(".. csv-table")
    imported = guide(one[0] + "\n".join(one[1] + one[2] for _ in range(count)))
    assert list(dict.fromkeys(r.benchmark for r in imported.results.get(ONE, ()))) == read
    assert any("in the order of all guides" in problem.reason for problem in imported.remarks) == bool(read)
