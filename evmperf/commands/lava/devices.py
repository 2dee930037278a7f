"""Device types and devices of a LAVA server, generated from board files."""

import json
from collections.abc import Mapping
from pathlib import Path

from evmperf.boards.board import VIRTUAL_HOST, Board
from evmperf.commands.lava.render import JOBS, default_device_type
from evmperf.commands.lava.selection import JobKind

DEVICE_TYPES = JOBS / "device-types"


def template(about: str, base: str, values: Mapping[str, object], *, usual: bool = False) -> str:
    """A template of LAVA that sets values of its base; `usual` ones only if nothing below sets them."""
    lines = [f"{{# {about} #}}", f"{{% extends '{base}.jinja2' %}}"]
    for name, value in values.items():
        text = json.dumps(value)
        lines.append(f"{{% set {name} = {f'{name}|default({text})' if usual else text} %}}")
    return "\n".join(lines) + "\n"


def write(board: Board, folder: Path) -> list[Path]:
    """Write a board's device type, with the file's own U-Boot prompts, and a device, for a real board to be
    filled in, below a folder as on a LAVA server; returns the files. Types that come with evmperf and
    existing devices stay. Raises UsageError for a virtual EVM without ports, or OSError.
    """
    title, name = board.options.board.title, default_device_type(board, JobKind.NATIVE)
    own = folder / "devices" / f"{board.file.stem}-01.jinja2"
    if board.is_virtual:
        serial, power = board.lab_ports()
        about = f"The {title} that `evmperf virtual start` serves on the ports of {board.file_name}."
        values = {"serial_port": serial, "power_url": f"http://{VIRTUAL_HOST}:{power}/power/0"}
        texts = {own: template(about, name, values)}
    else:
        raw = (JOBS / "templates" / "device.jinja2").read_text("utf-8")
        texts = {own: raw.replace("@TITLE@", title).replace("@TYPE@", name)}
    if not (DEVICE_TYPES / f"{name}.jinja2").exists():
        uboot_driver = board.drivers.get("EvmUBootDriver") or {}
        values = {}
        if "prompt" in uboot_driver:
            # LAVA wants the quotes in the text, as YAML would lose the space at the end.
            values["bootloader_prompt"] = json.dumps(uboot_driver["prompt"])
        if "autoboot" in uboot_driver:
            values["uboot_autoboot_prompt"] = uboot_driver["autoboot"]
        about = f"{title}: made by `evmperf lava device {board.file_name}`"
        base = "evm-virtual" if board.is_virtual else "evm-k3"
        texts[folder / "device-types" / f"{name}.jinja2"] = template(about, base, values, usual=True)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if path != own or not path.exists():
            path.write_text(text, encoding="utf-8")
    return sorted(texts)
