"""What is looked for on a board, without one."""

from evmperf.boards import board as boards
from evmperf.lab.desk import software


def test_every_board_has_programs_to_look_for():
    for name in boards.names():
        board = boards.load(boards.find(name))
        users = software.tools_on(board)
        assert users
        assert software.missing("\n".join(users), users).count("(for ") == len(users)


def test_flash_is_looked_for_by_its_name():
    checks = software.scratch_checks(boards.load(boards.find("virtual-ospi")))
    assert "/proc/mtd" in checks["ospi"]
    assert not [check for check in checks.values() if "umount" in check or "ubidetach" in check]
