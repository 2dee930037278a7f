"""What a guide says of its figures comes from the runs; nothing in it is another release's."""

import numpy as np
from evmperf_guides import importer
from msgspec.structs import replace

from evmperf.commands.cli import main as cli
from evmperf.model.anytime import half_width
from selftests.guide.test_guide_import import HEAD, table
from selftests.support import runs

STRANGE = '.. csv-table:: Odd\n    :header: "Colour","am64xx-hsevm: Hue"\n\n    "red","4711.00"\n\n'


def measured(folder, profile, **facts):
    found = list(runs.results(np.random.default_rng(1), profile=profile, count=1))
    runs.write(folder, found, **facts)
    if profile != "full":
        (file,) = folder.glob("*/run.json")
        file.write_text(file.read_text().replace('"full"', f'"{profile}"'))


def guide(capsys, *arguments):
    status = cli.main(["guide", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_published_figures_are_not_called_measured(capsys):
    _, text, _ = guide(capsys, "--release", "11.01", "--from", "baselines")
    assert "not measured by evmperf: am62lxx_evm-fs." in text
    assert "Measured by evmperf" not in text
    assert "pytest --lg-env" not in text


def test_a_guide_of_quick_runs_states_their_own_parameters(tmp_path, capsys):
    measured(tmp_path, "quick")
    _, text, _ = guide(capsys, "--release", "12.00", "--from", tmp_path)
    assert "evmperf with the quick profile" in text
    assert ".. csv-table:: EMMC RAW FIO 1G (quick profile)" in text
    assert "quick profile: size 16m (published: 1g), runtime_s 3 (published: 60)" in text
    assert "(1 boot cycles)" in text
    assert "20 boot cycles" not in text
    assert "of 100 MB" not in text
    imported = importer.interpret(text)[0]
    assert imported.unknown == []
    assert {r.profile for results in imported.results.values() for r in results} == {"quick"}


def test_a_guide_says_how_well_a_repeated_mean_is_known(tmp_path, capsys):
    found = runs.results(np.random.default_rng(1), benchmarks=("emmc_ext4",), count=6)
    runs.write(tmp_path, [replace(r, conditions={"repeat": "6 rounds"}) for r in found])
    _, text, _ = guide(capsys, "--release", "12.00", "--from", tmp_path)
    (line,) = [line for line in text.splitlines() if "rounds" in line]
    values = [100 * (1 + 0.001 * n) for n in range(6)]
    # They are in one proportion to each other in all cells: 100, 100.1 and so on.
    assert line == f"- am64xx-hsevm: 6 rounds, means within ±{half_width(values):.1%} (95 %)"


def test_a_guide_of_full_runs_says_nothing_of_other_parameters(tmp_path, capsys):
    measured(tmp_path, "full")
    _, text, _ = guide(capsys, "--release", "12.00", "--from", tmp_path)
    assert "Measured by evmperf: am64xx-hsevm." in text
    assert "quick" not in text


def like(tmp_path, body):
    file = tmp_path / "like.rst"
    file.write_text(HEAD + body)
    return file


def test_a_table_that_is_not_known_is_left_out_and_said(tmp_path, capsys):
    measured(tmp_path / "results", "full")
    layout = like(tmp_path, table(['"add (MB/s)","1.00"']) + "\n" + STRANGE)
    arguments = ("--release", "12.00", "--from", tmp_path / "results", "--like", layout)
    status, text, said = guide(capsys, *arguments)
    assert status == 1
    assert "4711" not in text
    assert "line 16 (Odd)" in said
    assert "no figures for: stream" in said


def test_rows_that_the_layout_lacks_follow_in_their_table(tmp_path, capsys):
    measured(tmp_path / "results", "full")
    body = (
        "EMMC Driver\n-----------\n\nEMMC EXT4\n^^^^^^^^^\n\n.. csv-table:: EMMC EXT4\n"
        '    :header: "Buffer size (bytes)","am64xx-hsevm: Write EXT4 Throughput (Mbytes/sec)"\n\n'
        '    "262144","1.00"\n'
    )
    arguments = ("--release", "12.00", "--from", tmp_path / "results")
    status, text, _ = guide(capsys, *arguments, "--like", like(tmp_path, body))
    assert status == 0
    rows = {r.case for r in importer.interpret(text)[0].results["am64xx-hsevm"] if r.benchmark == "emmc_ext4"}
    assert rows == {"102400", "262144", "524288", "1048576", "5242880"}
