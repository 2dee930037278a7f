"""A guide and what its figures were measured under: written, shown, and read again."""

import pytest
from evmperf_guides import importer

from evmperf.commands.app import why
from evmperf.commands.cli.main import main
from evmperf.measure.runs.spool import read_results, read_run
from evmperf.model.results import Sample
from evmperf.model.state import State
from evmperf.publish.guide import conditions
from selftests.support import spools

BOARD, RELEASE = "j7200-evm", "12.34"
WELL = State(
    shown={"queue.scheduler": "[none] bfq", "mmc.ios.timing_spec": "10 (mmc HS400)"},
    bus="mmc HS400",
    shares={"read_throughput": 0.785},
)
FACTS = {"kernel": "6.12.17", "governor": "performance", "serial_number": "S3CRET-0042"}


def a_run(folder, number, value, state, **facts):
    run = spools.a_run(
        number, board=BOARD, release=RELEASE, profile="full", facts=FACTS | facts, place="desk-77"
    )
    sample = Sample("read_throughput", value, "MB/s", 0, run.started_ns)
    words = {"benchmark": "emmc_ext4_fio_1g", "case": "1m", "tools": {"fio": "3.36"}, "state": state}
    return spools.write(
        folder, run, [spools.a_result(run, samples=(sample,), conditions={"medium": "m"}, **words)]
    )


@pytest.fixture
def guide(tmp_path):
    a_run(tmp_path / "well", 0, 314.0, WELL)
    file = tmp_path / "guide.rst"
    assert main(["guide", "--release", RELEASE, "--from", str(tmp_path / "well"), "-o", str(file)]) == 0
    return file


def test_a_guide_is_read_back_with_what_it_was_measured_under(guide, tmp_path):
    assert main(["import-guide", str(guide), "--into", str(tmp_path / "read")]) == 0
    (folder,) = (tmp_path / "read").iterdir()
    run, (result,) = read_run(folder), read_results(folder)
    assert (run.facts.kernel, result.state) == ("6.12.17", WELL)
    assert (result.tools, result.conditions) == ({"fio": "3.36"}, {"medium": "m"})
    assert result.published[0].mean == 314.0


def test_no_secret_of_the_lab_is_in_it(guide):
    text = conditions.beside(guide).read_text()
    assert "S3CRET" not in text
    assert "desk-77" not in text


def test_why_and_explain_work_against_a_guide_of_one_s_own(guide, tmp_path, capsys):
    bad = State(shown={**WELL.shown, "queue.scheduler": "none [bfq]"})
    folder = a_run(tmp_path / "results", 1, 150.0, bad, kernel="6.12.99")
    (answer,) = why.explain(folder, against=f"{why.GUIDE_FILE}{guide}").answers
    assert answer.causes[0].rule == "queue.scheduler"
    assert (answer.theirs, round(answer.ours)) == (314.0, 150)
    assert main(["import-guide", str(guide), "--into", str(tmp_path / "results")]) == 0
    capsys.readouterr()
    there = importer.run_of(importer.load(guide)[0], BOARD).id
    main(["compare", "--facts", there, folder.name, "--results", str(tmp_path / "results")])
    assert "6.12.99" in capsys.readouterr().out


def test_conditions_of_another_text_are_not_used(guide):
    guide.write_text(guide.read_text().replace("314.00", "315.00"))
    imported = importer.load(guide)[0]
    assert imported.conditions is None
    assert any("does not fit the text" in remark.reason for remark in imported.remarks)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "x", "guide": "", "boards": {}}', "\xff"])
def test_a_file_that_holds_no_conditions_costs_no_figure(guide, text):
    conditions.beside(guide).write_text(text, "latin-1")
    imported = importer.load(guide)[0]
    assert imported.results[BOARD][0].published[0].mean == 314.0
    assert any("not used" in remark.reason for remark in imported.remarks)


def test_the_page_folds_them_out(tmp_path):
    a_run(tmp_path / "well", 0, 314.0, WELL, governor="<b>odd</b>")
    assert (
        main(
            [
                "guide",
                "--release",
                RELEASE,
                "--from",
                str(tmp_path / "well"),
                "--html",
                str(tmp_path / "page"),
            ]
        )
        == 0
    )
    text = (tmp_path / "page/guide.html").read_text()
    assert f"<summary>Conditions on {BOARD}</summary>" in text
    assert "<dt>share of the limit</dt><dd>78% to 78% of mmc HS400</dd>" in text
    assert "fio 3.36" in text
    assert "<b>odd" not in text
