"""Tables of the terminal: what matters stays, whatever the width."""

import re

from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.verdict import Judgement, Outcome, Verdict
from evmperf.publish.report import verdicts
from evmperf.publish.report.shape import text_table
from selftests.support import spools


def test_a_run_at_80_columns_has_every_mean_and_unit_whole():
    run = spools.a_run()
    text = text_table([spools.a_result(run, 0, [2457600.123, 2457600.125])], 80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "2457600" in text
    assert "MB/s" in text


def test_verdicts_at_80_columns_say_which_what_and_why():
    why = "the kernel differs (6.12.49, not 6.6.58)"
    key = Key("lmbench", "lat_fs_16k_and_more", "latency_of_something")
    verdict = Verdict(key, Outcome.WORSE, "MB/s", Direction.HIGHER, 2.4e6, 3.1e6, 1e5, why=why)
    text = verdicts.text(Judgement("run", "board", "last:20", (verdict,)), width=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    lines = [line.ljust(80) for line in text.splitlines()[:-1]]
    # Columns are apart where two characters are blank in every line.
    blank = "".join(" " if {line[i] for line in lines} == {" "} else "x" for i in range(80))
    spans = [match.span() for match in re.finditer(r"x+(?: x+)*", blank)]
    cells = {}
    for begin, end in spans:
        heading, *parts = [line[begin:end].strip() for line in lines]
        cells[heading] = "".join(parts)
    assert cells["metric"] == key.metric
    assert cells["case"] == key.case
    assert cells["change"] == "-22.6 %"
    assert cells["why"].replace(" ", "") == why.replace(" ", "")
