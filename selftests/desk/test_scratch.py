"""A partition for benchmarks in free space: real tables, read by a real sfdisk, and changed by its person."""

import re
from pathlib import Path

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.boards import scratch
from evmperf.commands.app import desk
from evmperf.lab.desk import boardfile
from evmperf.model.errors import UsageError
from selftests.support.deskboard import Disks

TABLES, UNLIKE, OTHERS = yaml.safe_load(Path(__file__).with_name("scratch.yaml").read_text()).values()
GPT = "label: gpt\n"


@pytest.mark.parametrize(
    ("table", "tells"),
    [*((table, True) for table in TABLES), ("gpt", False), ("mbr with a logical one", False)],
)
def test_a_scratch_partition_takes_free_space_only(tmp_path, table, tells):
    *made_of, number = TABLES[table]
    disks = Disks(tmp_path, *made_of, tells=tells)
    before, image = disks.table, disks.image.read_bytes()
    survey = disks.run(scratch.SURVEY)
    assert scratch.present(survey) is None
    if number is None:
        with pytest.raises(UsageError, match="free behind its partitions"):
            scratch.plan(survey)
        return
    plan = scratch.plan(survey)
    assert plan.extent.number == number
    assert plan.command in plan.proposal
    assert ("copy of the table" in plan.proposal) == (table == "gpt of a smaller disk")
    assert disks.image.read_bytes() == image  # nothing was written
    disks.run(f"{{ {plan.command}; }} 2>&1")
    after = before | {(number, plan.extent.start, plan.extent.sectors)}
    assert disks.table == after
    disks.run(f"{{ {plan.command}; }} 2>&1")  # it is free no more
    assert disks.table == after
    if not tells:
        with pytest.raises(UsageError, match=rf"the table has p{number} .*reboot the board"):
            scratch.present(disks.run(scratch.SURVEY))
        disks.boot()
    assert scratch.present(disks.run(scratch.SURVEY)).device == plan.device == f"/dev/mmcblk0p{number}"


@pytest.mark.parametrize("change", UNLIKE)
def test_no_command_where_table_and_kernel_do_not_agree(tmp_path, change):
    used, now = UNLIKE[change]
    disks = Disks(tmp_path, used, 400, 400, tells=False)
    scratch.plan(disks.run(scratch.SURVEY))  # while they agree there is one
    disks.rewrite(now)
    with pytest.raises(UsageError, match=r"do not agree: .*may hold data"):
        scratch.plan(disks.run(scratch.SURVEY))


def test_the_command_checks_what_the_kernel_uses_when_it_is_typed(tmp_path):
    """Between the survey and the command somebody takes a partition out of the table."""
    disks = Disks(tmp_path, *TABLES["gpt"][:3], tells=False)
    plan = scratch.plan(disks.run(scratch.SURVEY))
    disks.rewrite(f"{GPT}1: size=64M\n2: size=32M\n3: size=200M\n")
    disks.boot()
    disks.rewrite(f"{GPT}size=64M\n")
    before = disks.table
    disks.run(f"{{ {plan.command}; }} 2>&1")
    assert disks.table == before


def test_a_disk_that_others_are_built_on_is_left_alone(tmp_path):
    disks = Disks(tmp_path, *TABLES["gpt"][:3])
    (tmp_path / "sys/block/mmcblk0/holders/dm-0").touch()
    with pytest.raises(UsageError, match="free behind its partitions"):
        scratch.plan(disks.run(scratch.SURVEY))


@pytest.mark.parametrize("table", OTHERS)
def test_a_partition_of_others_is_not_taken(tmp_path, table):
    disks = Disks(tmp_path, table, 400, 400)
    assert scratch.present(disks.run(scratch.SURVEY)) is None


def test_the_step_to_storage_writes_is_the_command_and_then_the_option(make_board, find, tmp_path):
    board = make_board("xunlong,orangepi-pc")
    board.disks = Disks(tmp_path, *TABLES["gpt"][:3])
    before, image = board.disks.table, board.disks.image.read_bytes()

    def step():
        return dict(find(ports=(board.path,)).steps)["Storage writes"]

    first = step()
    assert any("/dev/mmcblk0 (No such file" in line for line in find.said)
    assert board.disks.image.read_bytes() == image
    assert "evmperf writes no partition table" in first
    board.disks.run(first.splitlines()[1])  # the person
    assert len(board.disks.table - before) == 1
    second = step()
    assert second.startswith("/dev/mmcblk0p3 (302 MiB) is there")
    # What it says makes a file that measures there; the desk's own does not.
    file = next((tmp_path / "found").glob("*.yaml"))
    assert not boards.load(file).options.emmc.scratch
    boardfile.keep(file, tmp_path, "mine", {})
    data = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    main = data["targets"]["main"]
    main["features"].append("emmc")
    main["options"] |= yaml.safe_load(re.search("option `(.*)`$", second)[1])
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(data))
    mine = desk.named(str(tmp_path / "mine.yaml"))
    assert any(name.startswith("emmc") for name in mine.can)
    assert "/dev/mmcblk0p3 is overwritten" in mine.changes
