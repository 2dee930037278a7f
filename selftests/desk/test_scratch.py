"""A partition for benchmarks in free space: real tables, read by a real sfdisk, and changed by its person."""

import re

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.boards import scratch
from evmperf.commands.app import desk
from evmperf.lab.desk import boardfile
from evmperf.model.errors import UsageError
from selftests.support.deskboard import Disks

GPT, MBR = "label: gpt\n", "label: dos\n"
TABLES = {  # sfdisk's table, MiB of its disk then and now, the number that a partition gets
    "gpt": (f"{GPT}size=64M\nsize=32M\n", 400, 400, 3),
    "gpt with a gap": (f"{GPT}1: size=64M\n3: size=32M\n", 400, 400, 4),
    "gpt of a smaller disk": (f"{GPT}size=64M\n", 100, 400, 2),
    "gpt with a limit": (f"{GPT}last-lba: 204766\nsize=64M\n", 400, 400, None),
    "mbr": (f"{MBR}size=64M\nsize=32M\n", 400, 400, 3),
    "mbr with a gap": (f"{MBR}1: size=64M\n3: size=32M\n", 400, 400, 2),
    "mbr with a logical one": (
        f"{MBR}start=2048,size=20480\nstart=22528,size=131072,type=5\nstart=24576,size=20480\n",
        400,
        400,
        3,
    ),
    "full mbr": (f"{MBR}size=8M\nsize=8M\nsize=8M\nsize=8M\n", 400, 400, None),
    "full gpt": (f"{GPT}size=+\n", 400, 400, None),
}


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


UNLIKE = {  # the table that the kernel uses, and the one that is on the disk since
    "one is no longer in the table": (f"{GPT}size=64M\nsize=200M\n", f"{GPT}size=64M\n"),
    "one is shorter": (f"{MBR}size=64M\nsize=200M\n", f"{MBR}size=64M\nsize=100M\n"),
    "one has another number": (f"{GPT}1: size=64M\n2: size=32M\n", f"{GPT}1: size=64M\n3: size=32M\n"),
    "one more is in the table": (f"{MBR}size=64M\n", f"{MBR}size=64M\nsize=32M\n"),
    "another kind of table": (f"{GPT}size=64M\nsize=32M\n", f"{MBR}size=64M\n"),
    "the last of the logical ones": (
        f"{MBR}start=2048,size=20480\nstart=22528,size=300000,type=5\nstart=24576,size=20480\n"
        "start=47104,size=20480\n",
        f"{MBR}start=2048,size=20480\nstart=22528,size=20480,type=5\nstart=24576,size=2048\n",
    ),
}


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


@pytest.mark.parametrize(
    "table", [f'{GPT}size=64M,name="data"\n', f"{MBR}size=64M\n", f"{MBR}size=64M,type=da\nsize=32M\n"]
)
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
