"""A partition for benchmarks in free space: real tables, made and changed by a real sfdisk."""

from dataclasses import replace

import pytest

from evmperf.boards import board as boards
from evmperf.commands.app import desk
from evmperf.commands.app.requests import FindBoard
from evmperf.lab.provision import scratch
from evmperf.measure.bench import ShellReply
from evmperf.model.errors import BoardError, UsageError
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


@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize("table", TABLES)
def test_a_scratch_partition_takes_free_space_only(tmp_path, table, tells):
    *made_of, number = TABLES[table]
    disks = Disks(tmp_path, *made_of, tells=tells)
    before = disks.table
    if number is None:
        with pytest.raises(UsageError, match="free behind its partitions"):
            scratch.plan(disks.run(scratch.SURVEY))
        return
    plan = scratch.plan(disks.run(scratch.SURVEY))
    assert plan.number == number
    assert ("copy of the table" in str(plan)) == (table == "gpt of a smaller disk")
    printed = disks.run(f"{{ {plan.command}; }} 2>&1")
    assert ("reboot" in scratch.check(plan, disks.run(scratch.SURVEY), printed)) == (not tells)
    assert disks.table == before | {(number, plan.start, plan.sectors)}
    again = disks.run(f"{{ {plan.command}; }} 2>&1")  # it is free no more
    assert disks.table == before | {(number, plan.start, plan.sectors)}, again


def test_a_disk_that_sfdisk_refuses_is_told_by_its_words(tmp_path):
    disks = Disks(tmp_path, *TABLES["gpt"][:3])
    plan = replace(scratch.plan(disks.run(scratch.SURVEY)), start=2048)
    before = disks.table
    printed = disks.run(f"{{ {plan.command}; }} 2>&1")
    assert disks.table == before
    with pytest.raises(BoardError, match=r"planned: .*Failed to add #3"):
        scratch.check(plan, disks.run(scratch.SURVEY), printed)


class DiskShell:
    """A shell on a board with these disks."""

    def __init__(self, disks):
        self._disks = disks

    def run(self, command, timeout_s):
        return ShellReply(0, self._disks.run(command))


@pytest.mark.parametrize("label", [GPT, MBR])
def test_a_scratch_partition_comes_back_behind_an_image(tmp_path, label):
    disks = Disks(tmp_path, f"{label}size=64M\nsize=32M\n", 400, 400)
    shell, before = DiskShell(disks), disks.table
    assert scratch.made(shell, "/dev/mmcblk0p2", 100) == "/dev/mmcblk0p3"
    (new,) = disks.table - before
    assert new[2] == 100 << 11
    # It is there: nothing is written.
    assert scratch.made(shell, "/dev/mmcblk0p2", 80) == "/dev/mmcblk0p3"
    assert disks.table == before | {new}
    with pytest.raises(BoardError, match="scratch partition of 300 MiB"):
        scratch.made(shell, "/dev/mmcblk0p2", 300)


def test_a_kernel_that_does_not_see_the_partition_is_told(tmp_path):
    disks = Disks(tmp_path, *TABLES["gpt"][:3], tells=False)
    with pytest.raises(BoardError, match="after its next boot"):
        scratch.made(DiskShell(disks), "/dev/mmcblk0p2", 100)


def test_a_scratch_partition_is_made_once_a_person_agreed(make_board, tmp_path):
    board = make_board("xunlong,orangepi-pc")
    board.disks = Disks(tmp_path, *TABLES["gpt"][:3])
    before, shown = board.disks.table, []
    request = FindBoard(folder=str(tmp_path / "found"), ports=(board.path,), make_scratch=True)
    desk.find(request, lambda reply: None, lambda plan: bool(shown.append(plan)))
    assert "sfdisk" in shown[0]
    assert board.disks.table == before
    found = desk.find(request, lambda reply: None, lambda plan: True)
    assert board.disks.table != before
    assert boards.load(boards.Path(found.file)).options.emmc.scratch == "/dev/mmcblk0p3"
    assert "/dev/mmcblk0p3 is overwritten" in found.changes
