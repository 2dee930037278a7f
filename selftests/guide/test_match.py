"""What a table is: by all that says so together, and not where two of it contradict each other."""

import pytest
from evmperf_guides import importer

from evmperf.judge.published.declared import AGAIN
from selftests.guide.test_guide_import import HEAD, cells, guide

FIO = ("1m", "4m", "4k", "256k")
SIZES = ("102400", "262144", "524288")


def storage(section, caption="", rows=SIZES, system="EXT4", board="x1-evm"):
    headings = "\n".join(f"{name}\n{mark * 40}\n" for name, mark in zip(section, "-^~", strict=False))
    body = "\n".join(f'    "{row}","1.00","2.00"' for row in rows)
    return (
        f"{headings}\n.. csv-table:: {caption}\n"
        f'    :header: "Buffer size (bytes)","{board}: Write {system} Throughput (Mbytes/sec)",'
        f'"{board}: Write {system} CPU Load (%)"\n\n{body}\n\n'
    )


@pytest.mark.parametrize(
    ("section", "caption", "rows", "benchmark"),
    [
        (("EMMC Driver", "EMMC EXT4"), "EMMC EXT4", SIZES, "emmc_ext4"),
        (("EMMC", "EMMC EXT4"), "EMMC EXT4", SIZES, "emmc_ext4"),
        (("System Benchmarks", "EMMC", "EMMC EXT4"), "", SIZES, "emmc_ext4"),
        (("eMMC Flash",), "", FIO, "emmc_ext4_fio_1g"),
        (("Storage",), "EMMC EXT4 FIO 1G", FIO, "emmc_ext4_fio_1g"),
        (("SATA Driver",), "SATA EXT4 1G", SIZES, "sata_ext4_1g"),
        (("SATA Driver", "mSATA Driver"), "mSATA EXT4 SSD 1G", SIZES, "msata_ext4_1g"),
    ],
)
def test_sections_are_read_by_their_meaning(section, caption, rows, benchmark):
    imported = guide(storage(section, caption, rows))
    assert imported.unknown == []
    assert {r.benchmark for r in imported.results["x1-evm"]} == {benchmark}


@pytest.mark.parametrize(
    ("section", "caption", "rows", "both"),
    [
        (("MMCSD", "MMC EXT4"), "MMC EXT3", SIZES, ("MMC EXT4", "MMC EXT3")),
        (("EMMC Driver",), "EMMC EXT4", FIO, ("emmc_ext4,", "emmc_ext4_fio_1g")),
        (("EMMC Driver",), "EMMC EXT4 FIO 1G", SIZES, ("emmc_ext4_fio_1g", "emmc_ext4")),
        (("EMMC Driver", "MMC EXT4"), "", SIZES, ("'MMC EXT4' is below 'EMMC Driver'",)),
        (("Storage",), "Copying", SIZES, ("it could be any of", "emmc_ext4")),
    ],
)
def test_a_contradiction_makes_a_table_unknown_and_both_are_named(section, caption, rows, both):
    imported = guide(storage(section, caption, rows))
    assert imported.results == {}
    (problem,) = imported.unknown
    assert problem.table
    for said in both:
        assert said in problem.reason


def test_one_number_for_each_core_in_a_cell():
    body = (
        "System Benchmarks\n-----------------\n\n"
        "Stress-ng and Cyclic Test\n~~~~~~~~~~~~~~~~~~~~~~~~~\n\n"
        '.. csv-table:: \n    :header: "Latencies","am64xx-hsevm:per-core"\n\n'
        '    "Minimum (usec)","6,7"\n    "Maximum (usec)","57,66"\n'
    )
    imported = guide(body)
    assert imported.unknown == []
    assert cells(imported) == {
        ("cyclictest_stress", "Minimum (usec)", "latency_cpu0"): (6.0, None, None, "us"),
        ("cyclictest_stress", "Minimum (usec)", "latency_cpu1"): (7.0, None, None, "us"),
        ("cyclictest_stress", "Maximum (usec)", "latency_cpu0"): (57.0, None, None, "us"),
        ("cyclictest_stress", "Maximum (usec)", "latency_cpu1"): (66.0, None, None, "us"),
    }


def test_one_bad_row_costs_the_row_and_is_reported_at_its_line():
    whole = storage(("EMMC", "EMMC EXT4"), "EMMC EXT4")
    broken = whole.replace('"262144","1.00","2.00"', '"262144","1.00","2.00')
    imported = guide(broken)
    (problem,) = imported.unknown
    assert "comma-separated" in problem.reason
    assert (HEAD + broken).splitlines()[problem.line - 1].strip() == '"262144","1.00","2.00'
    assert [r.case for r in imported.results["x1-evm"]] == ["102400", "524288"]


def test_a_misspelt_board_is_not_another_board():
    many = [("EXT4", "EMMC EXT4"), ("EXT2", "EMMC EXT2"), ("VFAT", "EMMC VFAT")]
    body = "EMMC\n----\n\n" + "".join(
        storage((), caption, system=system, board="am64xx-hsevm" if n else "am64xx-hsemv")
        for n, (system, caption) in enumerate(many)
    )
    imported = guide(body)
    assert list(imported.results) == ["am64xx-hsevm"]
    assert "'am64xx-hsemv' is in 1 of the tables and resembles 'am64xx-hsevm'" in (imported.unknown[0].reason)


def test_figures_of_a_row_that_differ_between_two_tables_are_both_kept_and_marked():
    first = storage(("EMMC", "EMMC EXT4"), "EMMC EXT4")
    second = storage((), "EMMC EXT4").replace('"262144","1.00"', '"262144","1.50"')
    third = storage((), "EMMC EXT4").replace('"262144","1.00"', '"262144","1.70"')
    imported = guide(first + second)
    found = cells(imported, "x1-evm")
    both = ("262144", f"262144{AGAIN}")
    assert [found["emmc_ext4", c, "write_throughput"][0] for c in both] == [1.0, 1.5]
    assert imported.unknown == []
    said = [problem.reason for problem in imported.remarks]
    assert any("262144 write_throughput of x1-evm differs" in reason for reason in said)
    assert any("printed twice: 1 and 1.5" in reason for reason in said)
    assert any("repeats the figures of line" in reason for reason in said)
    (problem,) = guide(first + second + third).unknown
    assert "third" in problem.reason


def test_a_byte_order_mark_is_no_letter(tmp_path):
    file = tmp_path / "guide.rst"
    file.write_text("\ufeff" + HEAD + storage(("EMMC", "EMMC EXT4")), encoding="utf-8")
    assert importer.load(file)[0].unknown == []


def test_a_table_that_names_no_board_is_its_heading_s():
    power = (
        "{board}\n~~~~~~~~~\n\nTable:  **Deep sleep**\n\n.. csv-table::\n"
        '    :header: "Rail name","Rail voltage(V)","Power (mW)"\n\n'
        '    "vdd_core","0.75","{mw}"\n\n'
    )
    body = (
        storage(("EMMC",), "EMMC EXT4", board="x1-evm")
        + storage((), "EMMC EXT4", board="y2-evm")
        + "Low Power Performance\n---------------------\n\n"
        + power.format(board="X1-EVM", mw="3.10")
        + power.format(board="Y2-EVM", mw="4.20")
    )
    imported = guide(body)
    assert imported.unknown == []
    place = ("lpm_power_deep_sleep", "vdd_core", "power")
    assert cells(imported, "x1-evm")[place][0] == 3.1
    assert cells(imported, "y2-evm")[place][0] == 4.2
