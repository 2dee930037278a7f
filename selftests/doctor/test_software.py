"""What U-Boot's environment and uEnv.txt say of a boot, without a board."""

from __future__ import annotations

import pytest

from evmperf.boards import board as boards
from evmperf.lab.desk import software
from evmperf.lab.desk.finding import Noted
from evmperf.model.errors import LabError

PASSES = {"args_mmc": "setenv bootargs console=${console} ${optargs} root=/dev/x"}


def test_an_environment_that_passes_the_arguments():
    assert "nothing overwrites it" in software.environment(PASSES, "optargs")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"args_all": "setenv optargs earlycon"}, "args_all sets optargs itself: evmperf gives it"),
        ({"bootdelay": "0"}, "bootdelay is 0"),
        ({"loadbootenv": "fatload mmc 1 ${loadaddr} ${bootenvfile}"}, "uEnv.txt is imported"),
        ({"envboot": "if load mmc 1:1 ${a} uEnv.txt; then env import; fi"}, "uEnv.txt is imported"),
    ],
)
def test_what_is_good_to_know_is_noted(more, said):
    with pytest.raises(Noted, match=said):
        software.environment(PASSES | more, "optargs")


def test_a_bootargs_script_in_place_of_optargs():
    with pytest.raises(Noted, match=r"optargs, .*setargs"):
        software.environment({"setargs": "setenv bootargs root=/dev/x"}, "optargs")


def test_no_script_at_all_leaves_it_to_the_boot():
    with pytest.raises(Noted, match="or sets bootargs: extlinux"):
        software.environment({"bootcmd": "bootflow scan -lb"}, "optargs")


def test_a_script_that_cannot_be_typed_is_a_failure_of_the_lab():
    stuck = PASSES | {"args_all": f"setenv optargs {'x' * 900}"}
    with pytest.raises(LabError, match=r"args_all .*optargs .*changed"):
        software.environment(stuck, "optargs")


def uenv(text):
    return software.uenv(boards.load(boards.find("am64x")), lambda command: (0, text))


@pytest.mark.parametrize(
    "line", ["optargs=quiet", "args_all=setenv x", "uenvcmd=run y", " mmcdev=0", "bootpart=0:1"]
)
def test_lines_of_uenv_that_decide_are_noted(line):
    text = f"# /run/media/boot-mmcblk1p1/uEnv.txt\nserverip=192.0.2.1\n{line}\n"
    with pytest.raises(Noted, match=rf"uEnv.txt sets {line.strip().split('=')[0]}: this overrides"):
        uenv(text)


def test_comments_and_overlays_in_uenv_decide_nothing():
    text = "# /boot/uEnv.txt\n# optargs=quiet\nname_overlays=ti/a.dtbo ti/b.dtbo\n"
    assert uenv(text).endswith("medium, overlays ti/a.dtbo ti/b.dtbo")
    assert uenv("") == "none on the mounted partitions"


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
