"""Device types and devices of a LAVA server, generated from board files."""

import json
from pathlib import Path

from evmperf.boards.board import Board
from evmperf.lava.paths import DEVICE_TYPES
from evmperf.lava.render import default_device_type
from evmperf.lava.selection import JobKind
from evmperf.model.errors import LabError
from evmperf.virtual import envfile
from evmperf.virtual.board import HOST

_TYPE = """\
{{# {title}: made by `evmperf lava device {file}` #}}
{{% extends '{base}.jinja2' %}}
"""

_DEVICE = """\
{{# One {title} of your lab: put its console and its power switch here. #}}
{{% extends '{kind}.jinja2' %}}
{{% set connection_list = ['uart0'] %}}
{{% set connection_commands = {{'uart0': 'telnet ser2net.lab.example 2001'}} %}}
{{% set connection_tags = {{'uart0': ['primary', 'telnet']}} %}}
{{% set hard_reset_command = 'curl -sf http://power.lab.example/outlet/1/cycle' %}}
{{% set power_on_command = 'curl -sf http://power.lab.example/outlet/1/on' %}}
{{% set power_off_command = 'curl -sf http://power.lab.example/outlet/1/off' %}}
{{# With a card switch, what puts an image on its card (docs/provisioning.md):
{{% set flasher_deploy_commands = ['{{POWER_OFF_COMMAND}}',
     'usbsdmux /dev/usb-sd-mux/id-1 host',
     'evmperf image {{IMAGE}} --write /dev/disk/by-id/the-card',
     'usbsdmux /dev/usb-sd-mux/id-1 dut'] %}}
#}}
"""


_VIRTUAL = """\
{{# The {title} that `evmperf virtual start` serves on the ports of {file}. #}}
{{% extends '{kind}.jinja2' %}}
{{% set serial_port = {serial} %}}
{{% set power_url = '{power}' %}}
"""


def device_type(board: Board) -> str:
    """The device type's template: TI's, with the board file's own U-Boot prompts."""
    own = board.drivers.get("EvmUBootDriver") or {}
    base = "evm-virtual" if board.is_virtual else "evm-k3"
    text = _TYPE.format(title=board.options.board.title, file=board.file_name, base=base)
    if "prompt" in own:
        # LAVA wants the quotes in the text, as YAML would lose the space at the end.
        quoted = "'" + json.dumps(own["prompt"]) + "'"
        text += f"{{% set bootloader_prompt = bootloader_prompt|default({quoted}) %}}\n"
    if "autoboot" in own:
        text += (
            "{% set uboot_autoboot_prompt = "
            f"uboot_autoboot_prompt|default({json.dumps(own['autoboot'])}) %}}\n"
        )
    return text


def device(board: Board) -> str:
    """A device's template for the lab to fill in; raises UsageError for a virtual EVM without ports."""
    kind = default_device_type(board, JobKind.NATIVE)
    title = board.options.board.title
    if not board.is_virtual:
        return _DEVICE.format(title=title, kind=kind)
    serial, power = envfile.ports(board)
    url = f"http://{HOST}:{power}/power/0"
    return _VIRTUAL.format(title=title, file=board.file_name, kind=kind, serial=serial, power=url)


def write(board: Board, folder: Path) -> list[Path]:
    """Write both below a folder as on a LAVA server; returns the files. Types that come with evmperf and
    existing devices stay. Raises UsageError for a virtual EVM without ports, or LabError.
    """
    name = f"{default_device_type(board, JobKind.NATIVE)}.jinja2"
    own = folder / "devices" / f"{board.file.stem}-01.jinja2"
    texts = {folder / "device-types" / name: device_type(board), own: device(board)}
    if (DEVICE_TYPES / name).exists():
        del texts[folder / "device-types" / name]
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path != own or not path.exists():
                path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LabError(f"{folder}: cannot be written: {error.strerror}") from error
    return list(texts)
