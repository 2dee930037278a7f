"""What the record of a board and the order of a section tell of a table."""

import pytest

from selftests.guide.test_guide_import import guide, table

ONE = "am574x-idk"
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
