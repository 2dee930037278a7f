"""Facts, messages and names that are meant to be more than text, at every outlet."""

import contextlib
import html.parser
import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ET

import pytest
from docutils import core, nodes
from markdown_it import MarkdownIt
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from evmperf.commands.cli import main as cli
from evmperf.commands.lava.selection import lava_word
from evmperf.commands.night.closing import Closing
from evmperf.commands.night.conductor import Progress
from evmperf.commands.night.plan import Job
from evmperf.measure.runs import differences
from evmperf.measure.runs.history import SpoolFolder
from evmperf.measure.runs.spool import VERDICTS, append_records
from evmperf.model import outlets
from evmperf.model.alarm import AlarmState, MetricAlarm
from evmperf.model.change import Change, Comparison, Quantity
from evmperf.model.ended import cause
from evmperf.model.errors import Kind, LabError
from evmperf.model.figures import Key
from evmperf.model.records import VerdictRecord
from evmperf.model.results import Direction, Failure, Result, Sample, Status
from evmperf.model.verdict import Judgement, Outcome, Verdict
from evmperf.publish import site
from evmperf.publish.guide import writer
from evmperf.publish.influx import lines
from evmperf.publish.report import ab, page, verdicts
from pytest_evmperf import report
from pytest_evmperf.ticker import Ticker
from selftests.support import spools

TERMINAL = "\x1b]0;taken\x07\x1b[2J\x1b[8m\x9b31m\x00\r\x08\x7f\u202e\u2028"
HTML = "\"'><script>taken()</script><img src=x onerror=taken()></script><!--<script>&lt;"
MARKDOWN = "\n```\n/close\n````\n@everyone ~bug #1 !2 | `x` [y](javascript:taken()) ![z](//x.y/z)\n"
RST = "\n\n.. raw:: html\n\n   <script>taken()</script>\n\n`x <javascript:taken()>`_ |x| **y**\n"
LINES = 'a,b=c d "e" \\'
HOSTILE = f"/close {TERMINAL}{HTML}{MARKDOWN}{RST}{LINES}"
ADDRESSES = ("javascript:taken()", "javascript://%0ataken()", "\x01java\nscript:taken()", "data:,x")
KNOWN = """
    html head meta title style script link body header main nav section h1 h2 h3 p a ul ol li dl dt dd
    div span i strong small sup br table thead tbody tr th td details summary pre code figure figcaption
    label input button noscript progress time
"""
"""Elements of our pages."""
ALARM = MetricAlarm(AlarmState.OPEN, HOSTILE, HOSTILE, HOSTILE)


class Page(html.parser.HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.data = [], [], {}
        self._in = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "script":
            self._in = dict(attributes)

    def handle_endtag(self, tag):
        self._in = None if tag == "script" else self._in

    def handle_data(self, data):
        if self._in is not None:
            self.scripts.append((self._in, data))


def shown(text):
    """Fails for a text with a character that does something."""
    assert {c for c in text if unicodedata.category(c) in ("Cc", "Cs")} <= {"\n", "\t"}
    assert not set("\u2028\u2029\u202e\ufffe") & set(text)
    return text


def safe(text):
    """Fails for a page with more than its own elements, attributes, scripts and addresses."""
    read = Page(shown(text))
    assert {tag for tag, _ in read.tags} <= set(KNOWN.split())
    for _, attributes in read.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "src"):
            found = attributes.get(name) or ""
            assert re.match(r"(https?://|[^:]*$)", found), found
    assert not [code for _, code in read.scripts if "taken" in code and "<" in code]
    return read


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def results(tmp_path):
    """Nights of a board that is hostile in all it says."""
    folder = tmp_path / "results"
    for number in range(12):
        names = dict.fromkeys(("release", "os", "lab", "place", "kind", "outcome"), HOSTILE)
        run = spools.a_run(
            number,
            board=f"board {HOSTILE}" if number > 5 else "made-up",
            **names,
            addresses={"job": ADDRESSES[number % 4], "results": ADDRESSES[0]},
            facts={
                "kernel": f"{HOSTILE}{number}",
                HOSTILE: [{HOSTILE: HOSTILE}],
                "command_line": HOSTILE,
                "tools": {HOSTILE: f"{HOSTILE}{number}"},
            },
        )
        failure = Failure(Kind.BOARD, HOSTILE, HOSTILE, raw=ADDRESSES[0])
        found = [
            spools.a_result(
                run,
                n,
                benchmark=HOSTILE if n else "emmc_ext4",
                case=f"{HOSTILE}{n}",
                driver="emmc",
                tools={HOSTILE: HOSTILE},
                raw=(ADDRESSES[0], HOSTILE),
                conditions={HOSTILE: HOSTILE},
                failures=(failure,),
                status=Status.PARTIAL,
                samples=tuple(Sample(HOSTILE, 1.0 + k, HOSTILE, k, run.started_ns + k) for k in range(2)),
            )
            for n in range(2)
        ]
        made = spools.write(folder, run, [*found, spools.FAILED_BOOT])
        (made / differences.FOLDER).mkdir()
        for name in ("dmesg", "modules", "mounts", "uboot_environment", "kernel_config"):
            text = f"CONFIG_X={HOSTILE}{number}"
            (made / differences.FOLDER / name).write_bytes(text.encode("utf-8", "replace"))
        (made / "console.log").write_bytes(HOSTILE.encode("utf-8", "replace") * 20)
        (made / page.CHANGED).write_text(HOSTILE)
        record = VerdictRecord(HOSTILE, HOSTILE, HOSTILE, "emmc", Outcome.WORSE, HOSTILE, HOSTILE)
        append_records(made, [record], VERDICTS)
    return folder


def of_sides(results):
    folders = sorted(results.iterdir())
    return differences.between(folders[:1], folders[-1:])


def judgement():
    key = Key(HOSTILE, HOSTILE, HOSTILE)
    found = [
        Verdict(key, outcome, HOSTILE, Direction.HIGHER, 1.0, 2.0, why=HOSTILE, alarm=ALARM)
        for outcome in Outcome
    ]
    return Judgement(HOSTILE, HOSTILE, HOSTILE, tuple(found), {HOSTILE: 1}, {HOSTILE: 1}, again=HOSTILE)


def comparison():
    key = Key(HOSTILE, HOSTILE, HOSTILE)
    quantity = Quantity(HOSTILE, Direction.HIGHER)
    change = Change(key, quantity, (1.0, 2.0), (2.0, 3.0), 0.1, 0.0, 0.2, 9.0, 0.1, Outcome.WORSE)
    return Comparison(
        HOSTILE, HOSTILE, HOSTILE, HOSTILE, 2, 60.0, (change,), (key,), HOSTILE, notes=(HOSTILE,)
    )


def test_every_page_of_the_site_is_its_own(results, tmp_path, monkeypatch):
    out = tmp_path / "site"
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # starting processes takes the longest
    site.write(out, SpoolFolder(results))
    pages = list(out.rglob("*.html"))
    assert len(pages) > 6
    for file in pages:
        read = safe(file.read_text())
        # Every page ends where it should: nothing has swallowed what comes after it.
        assert any((a.get("src") or "").endswith("site.js") for t, a in read.tags if t == "script")
        for attributes, code in read.scripts:
            if attributes.get("id") == "data":
                assert json.loads(code)[0]["metric"] == HOSTILE
    scripts = [*out.glob("*/runs.js")]
    assert len(scripts) == 2
    for file in scripts:
        code = file.read_text()
        assert not set("<>&") & set(code)
        found = json.loads(code.partition(" = ")[2].rstrip(";\n"))
        assert {(row[4], row[5]) for row in found} == {("", "")}
        assert found[0][2] == HOSTILE
    assert all(path.resolve().is_relative_to(out.resolve()) for path in out.rglob("*"))


def test_a_report_is_its_own(results):
    folder = max(results.iterdir())
    page.write(folder)
    read = safe((folder / page.NAME).read_text())
    assert ("a", {"href": "results.jsonl"}) in read.tags  # the last part of the page


def test_the_page_of_an_a_b_is_its_own(results):
    found = comparison()
    safe(ab.as_html(found, of_sides(results)))
    harmless(ab.as_markdown(found, of_sides(results)))


def harmless(text):
    """Fails for Markdown that is more than headings, tables, lists and blocks of text."""
    shown(text)
    assert not re.search(r"^\s*/\w", re.sub(r"^ +/", "", text, flags=re.MULTILINE), re.MULTILINE)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for token in tokens:
        for inner in token.children or []:
            assert inner.type not in ("link_open", "image", "html_inline", "code_inline"), inner
        if token.type == "html_block":
            assert re.fullmatch(r"<details><summary>[\w ]+</summary>\n|</details>\n?", token.content)
        if token.type == "inline":
            # GitLab finds its references in text that no backslash protects.
            said = re.sub(r"\\.", "", token.content)
            assert not re.search(r"[@~]\w|[#!%]\d|\$|https?://", said), said
    return tokens


def test_markdown_is_text_and_no_command(results):
    text = verdicts.as_markdown(judgement(), of_sides(results))
    tokens = harmless(text)
    fences = [token for token in tokens if token.type == "fence"]
    assert len(fences) == 1
    assert "/close" in fences[0].content
    rows = [token for token in tokens if token.type == "tr_open"]
    assert len(rows) == 3  # a heading, what is worse, what is better: none was broken in two
    assert tokens[-1].content.strip() == "</details>"


@pytest.mark.parametrize("said", ["```", "````", "/close", "a\n```\n/close", "~~~", "``` x"])
def test_nothing_ends_a_block(said):
    block = outlets.fenced([said, "last"])
    (fence,) = MarkdownIt("commonmark").parse("\n".join(block))
    assert fence.content.count("\n") == 2
    assert not any(one.startswith("/") for one in block)


@pytest.mark.parametrize("form", [verdicts.as_junit, verdicts.as_openmetrics, verdicts.as_json])
def test_what_machines_read_of_a_verdict_can_be_read(form):
    text = form(judgement())
    if form is verdicts.as_junit:
        suite = ET.fromstring(text)
        assert len(suite) == len(Outcome)
        assert "taken()" in suite[0][0].get("message")
    elif form is verdicts.as_json:
        assert json.loads(text)["verdicts"][0]["why"] == HOSTILE
    else:
        assert list(text_string_to_metric_families(text))


@pytest.mark.parametrize(
    "words",
    [
        ("show", "{run}", "--facts"),
        ("show", "{run}"),
        ("history",),
        ("compare", "--facts", "{first}", "{run}"),
        ("compare", "--facts", "{first}", "{run}", "--all"),
        ("history", "made-up"),
        ("check", "{run}", "--against", "{first}"),
        ("show", HOSTILE),
        ("check", "{run}", "--against", "{first}", "--markdown", "-"),
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_no_command_sends_the_terminal_more_than_text(words, results, capsys):
    first, *_, last = sorted(results.iterdir())
    given = [word.replace("{run}", str(last)).replace("{first}", str(first)) for word in words]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(results.parent)
        with contextlib.suppress(SystemExit):
            cli.main([*given])
    said = capsys.readouterr()
    assert said.out + said.err
    shown(said.out + said.err)


def test_lines_of_a_session_and_a_night_are_text_and_a_name_for_lava_is_a_word():
    failed = spools.a_result(spools.a_run(), failures=(Failure(Kind.TOOL, HOSTILE),), status=Status.FAILED)
    shown(cause(failed))
    shown(str(LabError(HOSTILE)))
    ticker = Ticker(lambda: HOSTILE)
    assert "\n" not in shown(ticker._line())
    ticker.close()
    progress = Progress(Job("x.yaml", name=HOSTILE), "failed", sentence=HOSTILE)
    lines_of_it = Closing([progress], failed=[(HOSTILE, HOSTILE)]).lines
    assert shown("\n".join(lines_of_it)).count("\n") == 2
    assert re.fullmatch(r"[\w.-]+", lava_word(HOSTILE))


def test_what_grafana_shows_as_html_is_text_and_half_a_character_no_error():
    """That a line is a line is shown by a server that takes it: selftests/influx/test_push.py."""
    maker = lines.RunLines(spools.a_run(release=HOSTILE))
    made = [maker.run(), *maker.of(spools.a_result(spools.a_run(), case="a\udcff"))]
    assert all(one.encode() for one in made)
    text = re.search(r'release_mark="((?:[^"\\]|\\.)*)"', made[0], re.DOTALL)[1]
    assert "<" not in text
    assert "&lt;script" in text


def test_a_guide_has_no_markup_of_others():
    cells = [outlets.rst(HOSTILE), "1.5"]
    table = f'.. csv-table::\n    :header: "x","y"\n\n    {writer._csv(cells)}\n'
    text = f"Title\n=====\n\n- {outlets.rst(HOSTILE)}: x\n\n{table}"
    settings = {"report_level": 1, "halt_level": 2, "warning_stream": io.StringIO()}
    tree = core.publish_doctree(text, settings_overrides=settings)
    markup = (nodes.raw, nodes.reference, nodes.system_message, nodes.strong, nodes.substitution_reference)
    assert not [node for kind in markup for node in tree.findall(kind)]
    assert len(list(tree.findall(nodes.row))) == 2
    assert tree.astext().count("taken()") == 2 * HOSTILE.count("taken()")


@pytest.mark.parametrize(
    ("given", "link"),
    [
        *((bad, "") for bad in ADDRESSES),
        ("JavaScript:x", ""),
        ("//evil.test/x", ""),
        ("https://lab/x?y=1#z", True),
        ("../a%20b/report.html", True),
        ("x.html#job", True),
        ("a/b:c", True),
        ("x?y=a:b", True),
        ("a:b/c", ""),
        ("", True),
    ],
)
def test_a_link_leads_to_a_page(given, link):
    assert outlets.address(given) == (given if link is True else link)


def test_what_a_board_said_is_text_in_the_figures():
    hostile = "<script>alert(1)</script>"
    samples = (Sample("write_throughput", 1.5, "MB/s", 0, 1),)
    failures = (Failure(Kind.TOOL, hostile, "write"),)
    result = Result("emmc_ext4", 1, "emmc", hostile, {}, "quick", Status.FAILED, samples, failures)
    page = report._html(None, [result])
    assert "(MB/s)" in page
    assert " 1.50 " in page
    assert "<li>tool: write &lt;script&gt;" in page
    assert "<script" not in page
