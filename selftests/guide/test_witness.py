"""What the record of a board and the order of a section tell of a table."""

import pytest

from evmperf.judge.published import record, scatter
from evmperf.model.figures import Key
from selftests.guide.test_guide_import import guide, table

ONE, OTHER = "am574x-idk", "am654x-idk"
SECTION = "Ethernet Driver - CPSW CPSW2G NETCP"
KEY = '"UDP Datagram Size(bytes)"'


def columns(*boards):
    titles = ("Throughput (Mbits/sec)", "Packets Per Second (kpps) ")
    return ",".join([KEY, *(f'"{board}: {title}"' for board in boards for title in titles)])


@pytest.mark.parametrize(("count", "read"), [(1, []), (2, ["eth_udp_egress", "eth_udp_ingress"]), (3, [])])
def test_as_many_tables_without_captions_as_they_may_be_stand_in_order(count, read):
    rows = [f'"{size}","{size}.00","4.00"' for size in (64, 128, 256)]
    one = table(rows, columns(ONE), section=SECTION).partition(".. csv-table")
    imported = guide(one[0] + "\n".join(one[1] + one[2] for _ in range(count)))
    assert list(dict.fromkeys(r.benchmark for r in imported.results.get(ONE, ()))) == read
    assert any("in the order of all guides" in problem.reason for problem in imported.remarks) == bool(read)


WHOLE = '"128","90.00","80.00","90.00","20.00"'


def short(monkeypatch, row, whole=(WHOLE,), **loads):
    """A table of two boards with a short row and `whole` ones, where other releases, or this one, have these
    loads of each board at 64 bytes.
    """

    def history(board, os, without=""):
        known = loads.get("one" if board == ONE else "other", ())
        load = {(number,): ("", "%", one) for number, one in enumerate(known)}
        figures = {"cpu_load": load, "throughput": {}}
        if loads.get("same") and board == OTHER:
            figures["cpu_load"][RELEASE] = ("", "%", 20.5)
            figures["throughput"][RELEASE] = ("", "Mbit/s", 51.25)
        return {Key("eth_udp_egress", "64", metric): series for metric, series in figures.items()}

    monkeypatch.setattr(scatter, "history", history)
    titles = ("Throughput (Mbits/sec)", "CPU Load %")
    header = ",".join([KEY, *(f'"{board}: {title}"' for board in (ONE, OTHER) for title in titles)])
    return guide(table([*whole, row], header, "UDP Throughput Egress", SECTION))


THREE = ["j721e-idk-gw", "j742s2_evm-fs", "j784s4-evm"]
RELEASE = record.same_time("10.01.00")
HIGH, LOW = [80.0] * 8, [20.0] * 8


@pytest.mark.parametrize(
    ("row", "loads", "whose"),
    [
        ('"64","50.00","70.00"', {"one": HIGH, "other": LOW}, [ONE]),
        ('"64","50.00","20.00"', {"one": HIGH, "other": LOW}, []),
        ('"64","50.00","23.00"', {"one": HIGH, "other": LOW}, []),
        ('"64","50.00","70.00"', {"one": HIGH, "other": LOW[:7]}, []),
        ('"64","50.00","130.00"', {"one": HIGH, "other": LOW}, []),
        ('"64","51.25","20.50"', {"one": HIGH, "other": LOW, "same": True}, [OTHER]),
        ('"64","51.26","20.50"', {"one": HIGH, "other": LOW, "same": True}, []),
        ('"64","50.00","70.00","50.00","20.00","1.00"', {"one": HIGH, "other": LOW}, []),
    ],
)
def test_a_short_row_is_read_where_loads_or_another_guide_leave_one_board(monkeypatch, row, loads, whose):
    imported = short(monkeypatch, row, **loads)
    read = [board for board, results in imported.results.items() for r in results if r.case == "64"]
    assert read == whose
    said = imported.remarks if whose else imported.unknown
    assert any("lacks cells" in p.reason or "cells, " in p.reason for p in said)


TWICE = (WHOLE, '"256","180.00","80.00","180.00","20.00"')
NO_LOAD = [f'"{size}","90.00","","90.00","20.00"' for size in (128, 256, 512)]


@pytest.mark.parametrize(
    ("row", "whole", "whose"),
    [
        ('"64","50.00","89.00"', TWICE, [ONE]),
        ('"64","50.00","22.00"', TWICE, [OTHER]),
        ('"64","50.00","30.00"', TWICE, []),
        ('"64","50.00","45.00"', TWICE, []),
        ('"64","50.00","89.00"', NO_LOAD, [OTHER]),
        ('"64","50.00","89.00"', NO_LOAD[1:], []),
    ],
)
def test_a_short_row_is_read_where_other_rows_say_what_a_frame_costs_or_what_stays_empty(
    monkeypatch, row, whole, whose
):
    results = short(monkeypatch, row, whole).results.items()
    assert [board for board, of_board in results for r in of_board if r.case == "64"] == whose


@pytest.mark.parametrize(
    ("loads", "read"), [((80, 19), ["j721e-idk-gw"]), ((70, 35), THREE[:2]), ((8, 1), [])]
)
def test_a_short_row_and_its_twin_give_the_cells_that_only_one_board_can_have(monkeypatch, loads, read):
    """The row of no loss is not busy enough to tell, and the test's other table is."""
    highest = dict(zip(THREE, (90, 40, 20), strict=True))

    def history(board, os, without=""):
        load = {(n,): ("", "%", float(highest[board])) for n in range(8)}
        return {Key("eth_cpsw_udp_egress_0loss", "64", "cpu_load"): load}

    monkeypatch.setattr(scatter, "history", history)
    parts = ["UDP Datagram Size(bytes)", "THROUGHPUT (Mbits/sec)", "Packets Per Second (kPPS)", "CPU Load %"]
    tables = []
    for loss, more, busy in (("0 loss", [], (5, 1)), ("possible loss", ["Packet Loss %"], loads)):
        titles = [f'"{board}: {title}"' for board in THREE for title in parts + more]
        whole = [part for load in highest.values() for part in (82, 9, 10, load, *(1 for _ in more))]
        short = [part for load in busy for part in (18, 9, 10, load, *(1 for _ in more))]
        lines = [",".join(f'"{part}.00"' for part in row) for row in (whole, short)]
        rows = [f'"{size}",{line}' for size, line in zip((128, 64), lines, strict=True)]
        header = ",".join(['"Frame Size(bytes)"', *titles])
        tables.append(table(rows, header, f"CPSW2g UDP Ingress Throughput {loss}", SECTION))
    imported = guide("\n".join([tables[0], tables[1][tables[1].index(".. csv-table") :]]))
    for benchmark in ("eth_cpsw_udp_ingress_0loss", "eth_cpsw_udp_ingress_loss"):
        of_row = [
            board
            for board, results in imported.results.items()
            for r in results
            if (r.benchmark, r.case) == (benchmark, "64")
        ]
        assert of_row == list(read)
    assert len(imported.unknown) == (0 if len(read) == 2 else 2)


def test_a_short_row_of_very_many_boards_is_refused_at_once():
    """2^30 sets of boards might be what it has."""
    boards = [f"board{number}-evm" for number in range(30)]
    rows = [",".join(['"128"', *['"1.00"'] * 60]), ",".join(['"64"', *['"1.00"'] * 30])]
    imported = guide(table(rows, columns(*boards), "UDP Throughput Egress", SECTION))
    assert not [result for results in imported.results.values() for result in results if result.case == "64"]
    (problem,) = imported.problems
    assert "the row has 31 cells, fewer than the 61 of its header" in problem.reason
