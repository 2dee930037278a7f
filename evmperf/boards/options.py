"""The options of a board file: a class is a section, a field an option; `options.yaml` has their meaning.
Options without a default are required. "", 0 and () mean "the file does not say"; `Board.says` tells a 0 in
the file.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]
Number = Annotated[int, Meta(ge=0)]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A section of the options."""


class General(Section, frozen=True):
    """The board itself."""

    name: Text
    title: Text
    description: Text
    profile: Literal["full", "quick"]
    revision: Text = ""
    release: Text = ""
    compatible: Text = ""
    virtual: Text = ""
    tool: Literal["", "ti", "own"] = ""


class Booting(Section, frozen=True):
    """How the board boots."""

    medium: Literal["sd", "emmc", "nvme", "virtio"]
    power: Literal["", "switch", "hand", "reset", "none"] = ""
    flow: Literal["", "falcon", "sbl"] = ""
    max_failures: Number = 5


class System(Section, frozen=True):
    """Programs of the system benchmarks, where they are not the guides'."""

    dhrystone: Literal["runDhrystone", "evmperf-dhrystone"] = "runDhrystone"
    whetstone: Literal["runWhetstone", "evmperf-whetstone"] = "runWhetstone"
    linpack: Literal["runLinpack", "evmperf-linpack"] = "runLinpack"
    linpack_precision: Literal["single", "double"] = "single"
    nbench: Literal["runNBench.sh", "evmperf-nbench"] = "runNBench.sh"
    stream: Literal["stream_c", "evmperf-stream"] = "stream_c"
    cores: Number = 0
    coremark_pro: Text = "/opt/coremark-pro"
    multibench: Text = "/opt/multibench"


class Desk(Section, frozen=True):
    """What `evmperf desk` found on the board."""

    machine: Literal["", "aarch64", "armv7l", "riscv64", "x86_64"] = ""
    disks: tuple[str, ...] = ()


class Storage(Section, frozen=True):
    """A disk or card."""

    device: Text = ""
    scratch: Text = ""
    uboot_device: Number = 0
    uboot_partition: Text = ""


class Card(Storage, frozen=True):
    """An SD card."""

    uboot_fat_partition: Text = ""


class Mtd(Section, frozen=True):
    """SPI NOR or raw NAND flash."""

    scratch: Text = ""


class Flash(Mtd, frozen=True):
    """OSPI or QSPI flash."""

    flash: Literal["", "OSPI NOR", "QSPI NAND"] = ""
    device: Text = ""
    uboot_bus: Text = ""
    uboot_offset: Number = 0
    uboot_size: Number = 0


class Usb(Section, frozen=True):
    """USB, as host and as device."""

    scratch: Text = ""
    gadget_host: Literal["", "board", "tester"] = ""
    gadget_controller: Text = ""
    gadget_module: Text = ""


class Audio(Section, frozen=True):
    """Audio; a rate that the codec replaces by another is refused."""

    playback: Text = ""
    capture: Text = ""
    period_frames: Number = 0


class Can(Section, frozen=True):
    """CAN."""

    controller: Literal["can0", "vcan"] = "can0"


class Graphics(Section, frozen=True):
    """GPU and display."""

    compositor: Text = ""
    renderer: Literal["gpu", "software"] = "gpu"


class Power(Section, frozen=True):
    """Low-power modes and the meter (see power.md)."""

    rails: tuple[str, ...] = ()
    supply: tuple[str, ...] = ()
    deep_sleep_command: Text = ""
    rtc_ddr_command: Text = ""
    mcu_only_command: Text = ""
    io_ddr_command: Text = ""
    sleep_s: Count = 60


class Cable(Section, frozen=True):
    """A cable to the tester."""

    interface: Text = ""
    board_address: Text = ""
    tester_address: Text = ""
    link_mbit: Number = 0


class Ethernet(Cable, frozen=True):
    """A port of the board, with its cable."""

    rx_usecs: Count = 500
    second_interface: Text = ""
    forwarding: Literal["hardware", "software"] = "hardware"
    tester_interfaces: tuple[str, ...] = ()


class Ipsec(Cable, frozen=True):
    """A port of the board that talks IPsec to the tester."""

    accelerator: Text = ""
    accelerator_module: Text = ""
    accelerator_algorithms: tuple[str, ...] = ()


class Pcie(Section, frozen=True):
    """What is in the PCIe slot: an NVMe disk, or a network card with a cable to the tester."""

    scratch: Text = ""
    eth_interface: Text = ""
    eth_board_address: Text = ""
    eth_tester_address: Text = ""
    eth_link_mbit: Number = 0

    @property
    def cable(self) -> Cable:
        """The network card's."""
        return Cable(
            interface=self.eth_interface,
            board_address=self.eth_board_address,
            tester_address=self.eth_tester_address,
            link_mbit=self.eth_link_mbit,
        )


class Ipc(Section, frozen=True):
    """The board's other processors."""

    processors: tuple[str, ...] = ()


class Camera(Section, frozen=True):
    """A camera."""

    device: Text = ""
    sensor: Text = ""
    setup: Text = ""


class Tester(Section, frozen=True):
    """The machine beside the board (see lab-set-up.md)."""

    host: Text = ""


class Provisioning(Section, frozen=True):
    """Images that `--image` puts on the board (see provisioning.md)."""

    machine: Text = ""
    silicon: Literal["", "gp", "hs-fs", "hs-se"] = ""
    device: Text = ""
    command: Text = ""


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All options of a board, by section."""

    board: General
    boot: Booting
    system: System = System()
    desk: Desk = Desk()
    emmc: Storage = Storage()
    mmcsd: Card = Card()
    ufs: Storage = Storage()
    sata: Storage = Storage()
    msata: Storage = Storage()
    ospi: Flash = Flash()
    spi: Mtd = Mtd()
    nand: Mtd = Mtd()
    pcie: Pcie = Pcie()
    usb: Usb = Usb()
    alsa: Audio = Audio()
    can: Can = Can()
    graphics: Graphics = Graphics()
    power: Power = Power()
    eth: Ethernet = Ethernet()
    cpsw: Ethernet = Ethernet()
    icssg: Ethernet = Ethernet()
    ipsec: Ipsec = Ipsec()
    camera: Camera = Camera()
    ipc: Ipc = Ipc()
    tester: Tester = Tester()
    image: Provisioning = Provisioning()
    absent: dict[str, Text] = msgspec.field(default_factory=dict)
    goals: dict[str, Text] = msgspec.field(default_factory=dict)

    def cable(self, section: str) -> Cable:
        """The cable to the tester that a section describes; raises TypeError for other sections."""
        found = getattr(self, section)
        found = found.cable if isinstance(found, Pcie) else found
        if not isinstance(found, Cable):
            raise TypeError(f"{section} has no cable")
        return found


MAPPINGS = {"absent": "the reason, as one sentence", "goals": "the goal, as `at least 55 MB/s, owner NAME`"}
"""Parts of the options that are no sections: their words are free, and what each one's text is."""
ABSENT = "absent"
"""Section of features and benchmarks that the board cannot have, each with the reason."""
