"""Rendered jobs, device types and devices against LAVA 2023.01's own schemas and templates."""

import dataclasses
import functools
import re
import subprocess

import pytest
import yaml

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Place
from evmperf.benchmarks.step import Prepare, SearchStep, Where
from evmperf.boards import board as boards
from evmperf.boards import prompts
from evmperf.commands.lava import devices
from evmperf.commands.lava.joblog import decode_header
from evmperf.commands.lava.render import JOBS, METADATA, JobConsole, JobRequest, default_device_type, render
from evmperf.commands.lava.selection import JobKind, matches, select
from evmperf.lab.shell import EvmShellDriver
from evmperf.lab.strategy import K3BootStrategy
from evmperf.model.errors import UsageError
from selftests.support.lava_jobs import made_up
from selftests.support.lava_packages import Checker, unpacked

BOARDS = {name: boards.load(boards.ENV_DIR / name) for name in boards.names()}
PLACES = {JobKind.BOOT: Place.BOOT, JobKind.NATIVE: Place.SHELL}


def has(name, kind):
    """Whether the catalogue has anything for such a job on that board."""
    try:
        return bool(select(BOARDS[name], kind, "full"))
    except UsageError:
        return False


POSSIBLE = [(name, kind) for name in BOARDS for kind in JobKind if has(name, kind)]


@pytest.fixture(scope="module")
def lava():
    with pytest.MonkeyPatch.context() as patch:
        yield Checker(unpacked(), patch)


def job(name="virtual.yaml", kind=JobKind.NATIVE, keyword="", **more):
    """A rendered job as data."""
    board = BOARDS[name]
    profile = board.options.board.profile
    chosen = select(board, kind, profile, keyword)
    return yaml.safe_load(render(board, chosen, JobRequest(kind, keyword, **more)))


def shell_text(data):
    """All that a job's test shell will run."""
    tests = [action["test"] for action in data["actions"] if "test" in action]
    return [
        step
        for test in tests
        for definition in test["definitions"]
        for step in definition["repository"]["run"]["steps"]
    ]


def test_every_board_of_the_guides_has_all_kinds_of_jobs():
    guides = [name for name, board in BOARDS.items() if not board.is_virtual]
    assert guides
    for name in [*guides, "virtual.yaml"]:
        assert {kind for board, kind in POSSIBLE if board == name} == set(JobKind)


@pytest.mark.parametrize(("name", "kind"), POSSIBLE)
def test_every_kind_of_job_of_every_board_fits_both_schemas(lava, name, kind):
    data = job(name, kind)
    assert lava.strict(data) == ""
    assert lava.submission(data) == ""
    header = decode_header(data["metadata"][METADATA])
    assert header["board_file"] == name
    assert header["benchmarks"]
    assert [said for step in shell_text(data) if (said := wrong_syntax(step))] == []


@functools.cache  # boards have most steps in common
def wrong_syntax(step):
    """What a shell says against the syntax of a step."""
    return subprocess.run(["sh", "-n"], input=step, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize(("name", "kind"), [p for p in POSSIBLE if p[1] in PLACES])
def test_a_job_has_what_the_catalogue_has_for_its_place(name, kind):
    board = BOARDS[name]
    chosen = select(board, kind, "full")
    assert {benchmark.place for benchmark in chosen.benchmarks} == {PLACES[kind]}
    fits = {b.name for b in chosen.benchmarks} | {line.split(":")[0] for line in chosen.refused}
    host = select(board, JobKind.HOST, "full")
    assert {benchmark.name for benchmark in host.benchmarks} <= fits


SAYS = {
    "name": "a.wic.xz",
    "sha256": "ab" * 32,
    "uboot": "U-Boot 2025.01 (Jan 01 2025 - 00:00:00)",
    "kernel": "6.12.43-ti",
    "version": "#1 SMP it's",
    "release": "11.01",
    "machine": "am64xx-evm",
}


def test_a_job_with_a_whole_image_has_it_flashed_and_fits_both_schemas(lava):
    data = job("am64x.yaml", image="http://images/a.wic.xz", says=SAYS)
    assert lava.strict(data) == lava.submission(data) == ""
    flash, overlay, boot = (next(iter(action.values())) for action in data["actions"][:3])
    assert flash["to"] == "flasher"
    assert flash["images"]["image"] == {
        "url": "http://images/a.wic.xz",
        "compression": "xz",
        "sha256sum": "ab" * 32,
    }
    assert overlay["to"] == "overlay"
    assert boot["commands"][-1] == "boot"
    header = decode_header(data["metadata"][METADATA])
    assert header["image_uboot"] == SAYS["uboot"]
    assert header["release"] == "11.01"
    plain = job("am64x.yaml")
    assert next(iter(plain["actions"][0].values()))["to"] == "overlay"


@pytest.mark.parametrize("name", sorted(BOARDS), ids=lambda name: name.removesuffix(".yaml"))
def test_the_device_of_every_board_renders_on_lavas_templates(lava, name, tmp_path):
    board = BOARDS[name]
    kind = default_device_type(board, JobKind.NATIVE)
    *_, file = devices.write(board, tmp_path)
    assert f"'{kind}.jinja2'" in file.read_text()
    types = tmp_path / "device-types"
    assert (types / f"{kind}.jinja2").exists() != (devices.DEVICE_TYPES / f"{kind}.jinja2").exists()
    _check_device(lava.with_types(types), file)


def test_the_virtual_evm_with_a_card_switch_is_flashed_by_its_commands(lava, tmp_path):
    *_, file = devices.write(BOARDS["virtual-sd.yaml"], tmp_path)
    device = yaml.safe_load(lava.templates.from_string(file.read_text()).render())
    commands = device["actions"]["deploy"]["methods"]["flasher"]["commands"]
    host, write, dut = commands[1:]
    assert commands[0] == "{POWER_OFF_COMMAND}"
    assert host == "curl -sSf -X PUT -d host http://127.0.0.1:7008/card/0"
    assert write.startswith("evmperf image show {IMAGE} --write ")
    assert dut.endswith("-d dut http://127.0.0.1:7008/card/0")
    plain = yaml.safe_load(lava.templates.get_template("evm-virtual.jinja2").render())
    assert "flasher" not in plain["actions"]["deploy"]["methods"]


@pytest.mark.parametrize("file", sorted((JOBS / "devices").glob("*.jinja2")), ids=lambda f: f.stem)
def test_every_device_renders_on_lavas_templates(lava, file):
    _check_device(lava, file)


def test_a_board_with_another_u_boot_has_its_prompts_in_its_device_type(lava, tmp_path):
    drivers = {"EvmUBootDriver": {"prompt": "J7 # ", "autoboot": "any key to stop"}}
    board = dataclasses.replace(BOARDS["j721e.yaml"], drivers=drivers)
    kind, file = devices.write(board, tmp_path)
    checker = lava.with_types(kind.parent)
    data = yaml.safe_load(checker.templates.from_string(file.read_text()).render())
    assert data["actions"]["boot"]["methods"]["u-boot"]["parameters"]["bootloader_prompt"] == "J7 # "
    assert data["constants"]["u-boot"]["interrupt-prompt"] == "any key to stop"
    file.write_text("filled in")
    devices.write(board, tmp_path)
    assert file.read_text() == "filled in"


def _check_device(lava, file):
    data = yaml.safe_load(lava.templates.from_string(file.read_text()).render())
    assert lava.device(data) == ""
    methods = data["actions"]["boot"]["methods"]
    if "lab-host" in file.name:
        assert "ssh" in methods
        return
    uboot = methods["u-boot"]["parameters"]
    assert uboot["bootloader_prompt"] == prompts.UBOOT_PROMPT
    assert data["constants"]["u-boot"]["interrupt-prompt"] == prompts.AUTOBOOT
    assert data["commands"]["hard_reset"]
    assert data["parameters"]["booti"]["kernel"].startswith("0x")


def test_the_media_and_prompts_are_the_strategys():
    fields = {field.name: field.default for field in K3BootStrategy.__attrs_attrs__}
    assert fields["media"].factory() == {name: [*w] for name, w in prompts.MEDIA.items()}
    shell = {field.name: field.default for field in EvmShellDriver.__attrs_attrs__}
    console = JobConsole(BOARDS["am64x.yaml"])
    assert console.login_prompt == fields["login_prompt"]
    assert console.init_shell_prompt == fields["init_shell_prompt"]
    assert (console.prompt, console.username) == (shell["prompt"], shell["username"])
    assert console.boot_commands("init=/bin/sh") == [
        "setenv mmcdev 1",
        "setenv bootpart 1:2",
        f"setenv {fields['kernel_arguments_variable']} init=/bin/sh",
        fields["boot_command"],
    ]


@pytest.mark.parametrize(
    ("keyword", "selected"),
    [
        ("", True),
        ("emmc", True),
        ("EMMC and ext4", True),
        ("not (emmc or boot)", False),
        ("emmc and not ext4", False),
        ("usb", False),
    ],
)
def test_k_selects_as_pytest_does(keyword, selected):
    assert matches(keyword, "test_emmc.py emmc_ext4_fio_1g") is selected


@pytest.mark.parametrize("keyword", ["emmc and", "(emmc", "emmc ext4", "emmc or or boot"])
def test_a_wrong_expression_is_named(keyword):
    with pytest.raises(UsageError, match=f"-k {re.escape(repr(keyword))} is not an expression"):
        matches(keyword, "anything")


def test_a_host_job_calls_pytest_for_the_benchmarks_alone():
    (text,) = shell_text(job(kind=JobKind.HOST, keyword="emmc_ext4 and not fio"))
    assert "-k '[emmc_ext4-'" in text
    (text,) = shell_text(job(kind=JobKind.HOST))
    assert " -k " not in text
    (text,) = shell_text(job(kind=JobKind.HOST, release='11 "beta"'))
    assert "'--release=11 \"beta\"'" in text or "--release='11 \"beta\"'" in text
    (text,) = shell_text(job(kind=JobKind.HOST, image="it's 11.01"))
    assert """ --image='it'"'"'s 11.01'""" in text


def test_a_job_leaves_out_the_rows_that_the_board_lacks():
    board = BOARDS["virtual-ospi.yaml"]
    chosen = select(board, JobKind.NATIVE, "quick", "linux_flash_summary")
    assert [case.params["flash"] for _, case in chosen.cases] == [board.options.ospi.flash]


def test_a_job_asks_for_the_programs_that_the_board_file_names():
    chosen = select(BOARDS["virtual.yaml"], JobKind.NATIVE, "quick", "dhrystone or linpack")
    assert chosen.tools == ["evmperf-dhrystone", "evmperf-linpack", "taskset"]


def search(board, case, plan):
    return [SearchStep("look", lambda: iter(()), 10, 1)]


def beside(board, case, plan):
    return [Prepare("send", "true", 10, where=Where.TESTER)]


def mangled(board, case, plan):
    return [Prepare("run", "su --shell /bin/sh -c 'echo $1'", 10)]


def ends(board, case, plan):
    return [Prepare("run", "echo\nEVMPERF_END\necho", 10)]


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (search, "odd: .* search .*--kind host"),
        (beside, "odd: .* tester .*--kind host"),
        (mangled, "has --cmd or --shell beside \\$1, which LAVA changes"),
        (ends, "has a line EVMPERF_END"),
    ],
)
def test_steps_that_a_native_job_cannot_run_are_refused(monkeypatch, steps, said):
    odd = made_up("odd", steps, ["1"])
    monkeypatch.setattr(catalogue, "benchmarks", lambda: {"odd": odd})
    with pytest.raises(UsageError, match=said):
        job()
    assert "[odd-" in shell_text(job(kind=JobKind.HOST, keyword="odd"))[0]
