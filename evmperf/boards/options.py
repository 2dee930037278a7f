"""The options of a board file, declared once: types, checks, messages, documentation and schema.

A class is a section, a field an option; its description is what messages, the table in docs/add-a-board.md
and an editor say of it. A field without a default must be said. Defaults that mean "the file does not say"
are "", 0 and (); `Board.says` tells a 0 that was said from one that was not.
"""

from typing import Annotated, Literal

import msgspec

from evmperf.boards.cables import Cable, Ethernet, Ipsec, Pcie
from evmperf.boards.section import Count, Number, Section, Text, about


class General(Section, frozen=True):
    """The board itself."""

    name: Annotated[Text, about("the board's name in the guides, e.g. am64xx-hsevm")]
    title: Annotated[Text, about("the board's name in the guide's table of evaluation modules")]
    description: Annotated[Text, about("its description in that table: revision, clock, memory")]
    profile: Annotated[Literal["full", "quick"], about("default profile; full has the published parameters")]
    revision: Annotated[Text, about("board revision, if the description does not name it")] = ""
    release: Annotated[Text, about("SDK release, if the image does not name it")] = ""
    compatible: Annotated[
        Text, about("its name in the device tree (first of /proc/device-tree/compatible)")
    ] = ""
    virtual: Annotated[Text, about("image variant of a virtual EVM; real boards have none")] = ""


class Boot(Section, frozen=True):
    """How the board boots."""

    medium: Annotated[Literal["sd", "emmc", "nvme", "virtio"], about("boot medium")]
    power: Annotated[
        Literal["", "switch", "hand", "reset", "none"],
        about(
            "power control, if no driver provides it: reset uses a reset line (a driver like "
            "DigitalOutputResetDriver) or `reboot` and U-Boot's `reset`, none leaves the board as it is found"
        ),
    ] = ""
    max_failures: Annotated[Number, about("failed boot cycles before the board is called broken")] = 5


class System(Section, frozen=True):
    """Programs of the system benchmarks, where they are not the guides'."""

    dhrystone: Annotated[
        Literal["runDhrystone", "evmperf-dhrystone"], about("name of the Dhrystone program")
    ] = "runDhrystone"
    whetstone: Annotated[
        Literal["runWhetstone", "evmperf-whetstone"], about("name of the Whetstone program")
    ] = "runWhetstone"
    linpack: Annotated[Literal["runLinpack", "evmperf-linpack"], about("name of the Linpack program")] = (
        "runLinpack"
    )
    linpack_precision: Annotated[Literal["single", "double"], about("precision of the runLinpack build")] = (
        "single"
    )
    nbench: Annotated[Literal["runNBench.sh", "evmperf-nbench"], about("name of the NBench program")] = (
        "runNBench.sh"
    )
    stream: Annotated[Literal["stream_c", "evmperf-stream"], about("name of the STREAM program")] = "stream_c"
    cores: Annotated[Number, about("number of Linux cores, if CoreMark-PRO may use more than two")] = 0
    coremark_pro: Annotated[Text, about("folder of CoreMark-PRO")] = "/opt/coremark-pro"
    multibench: Annotated[Text, about("folder of MultiBench")] = "/opt/multibench"


class Storage(Section, frozen=True):
    """A disk or card."""

    device: Annotated[Text, about("the whole device under Linux, e.g. /dev/mmcblk0")] = ""
    scratch: Annotated[Text, about("the partition that benchmarks may overwrite, e.g. /dev/mmcblk0p1")] = ""
    uboot_device: Annotated[
        Number, about("the number of the device for U-Boot's mmc (on UFS: scsi) command")
    ] = 0
    uboot_partition: Annotated[
        Text, about("label or number of the scratch partition for U-Boot's part command")
    ] = ""


class Card(Storage, frozen=True):
    """An SD card."""

    uboot_fat_partition: Annotated[
        Text,
        about(
            "number of a FAT partition where U-Boot may write and remove a file of up to "
            "16 MiB, e.g. the boot partition"
        ),
    ] = ""


class Mtd(Section, frozen=True):
    """SPI NOR or raw NAND flash."""

    scratch: Annotated[
        Text,
        about(
            "the MTD partition that benchmarks may overwrite, named as in /proc/mtd; "
            "it must not be mounted or attached to UBI"
        ),
    ] = ""


class Flash(Mtd, frozen=True):
    """OSPI or QSPI flash."""

    flash: Annotated[
        Literal["", "OSPI NOR", "QSPI NAND"], about("kind of flash, as the guides' summaries name it")
    ] = ""
    device: Annotated[Text, about("the MTD partition that is read, named as in /proc/mtd")] = ""
    uboot_bus: Annotated[Text, about("bus and chip select for U-Boot's sf probe, e.g. 0:0")] = ""
    uboot_offset: Annotated[
        Number, about("first byte of the area that benchmarks may overwrite in U-Boot")
    ] = 0
    uboot_size: Annotated[Number, about("size of that area in bytes (whole erase blocks)")] = 0


class Usb(Section, frozen=True):
    """USB, as host and as device."""

    scratch: Annotated[Text, about("the partition of a USB disk that benchmarks may overwrite")] = ""
    gadget_host: Annotated[
        Literal["", "board", "tester"],
        about(
            "the USB host of the board's gadget, a disk with the serial number evmperf- and the board's name"
        ),
    ] = ""
    gadget_controller: Annotated[
        Text, about("the USB device controller of that port, if /sys/class/udc has several")
    ] = ""
    gadget_module: Annotated[Text, about("the controller's kernel module, if nothing else loads it")] = ""


class Audio(Section, frozen=True):
    """Audio; a rate that the codec replaces by another is refused."""

    playback: Annotated[Text, about("the ALSA device that plays, without conversion: hw:CARD,DEVICE")] = ""
    capture: Annotated[Text, about("the ALSA device that records, without conversion: hw:CARD,DEVICE")] = ""
    period_frames: Annotated[Number, about("frames of a period: 256 on AM6x, 64 on J7 in the guides")] = 0


class Can(Section, frozen=True):
    """CAN."""

    controller: Annotated[
        Literal["can0", "vcan"], about("the controller; vcan is the kernel's own, without bit rates")
    ] = "can0"


class Graphics(Section, frozen=True):
    """GPU and display."""

    compositor: Annotated[
        Text,
        about(
            "the systemd service of the compositor (weston); glmark2's DRM run stops it "
            "and starts it again; none if the board has no compositor"
        ),
    ] = ""
    renderer: Annotated[Literal["gpu", "software"], about("what draws")] = "gpu"


class Power(Section, frozen=True):
    """Low-power modes and the meter (see power.md)."""

    rails: Annotated[
        tuple[str, ...], about("the rails that the meter reads, named as in the guide's table")
    ] = ()
    deep_sleep_command: Annotated[
        Text, about("puts the board into deep sleep for {seconds}, e.g. rtcwake -s {seconds} -m mem")
    ] = ""
    rtc_ddr_command: Annotated[
        Text, about("leaves only RTC and DDR on for {seconds}; returns when the board is awake again")
    ] = ""
    mcu_only_command: Annotated[Text, about("the same, with only the MCU domain on")] = ""
    io_ddr_command: Annotated[Text, about("the same, with only I/O and DDR on")] = ""
    sleep_s: Annotated[Count, about("seconds of one sleep, long enough for the rails to settle")] = 60


class Ipc(Section, frozen=True):
    """The board's other processors."""

    processors: Annotated[
        tuple[str, ...], about("the processors that echo messages, as in the guide's table: R5F0_0, M4F")
    ] = ()


class Camera(Section, frozen=True):
    """A camera."""

    device: Annotated[Text, about("the video device, e.g. /dev/video0")] = ""
    sensor: Annotated[Text, about("the sensor, as the guide names it, e.g. ov10635")] = ""
    setup: Annotated[
        Text,
        about(
            "the command (media-ctl, v4l2-ctl) that connects the sensor to the device "
            "for {width}, {height} and {format} (a FourCC), if the device needs one"
        ),
    ] = ""


class Tester(Section, frozen=True):
    """The machine beside the board (see lab-set-up.md)."""

    host: Annotated[
        Text,
        about(
            "its SSH name, `local` for this machine, or `virtual` beside a virtual EVM; "
            "$EVMPERF_TESTER overrides it"
        ),
    ] = ""


class Image(Section, frozen=True):
    """Images that `--image` puts on the board (see provisioning.md)."""

    machine: Annotated[Text, about("the machine name of this board's images (their /etc/hostname)")] = ""
    silicon: Annotated[
        Literal["", "gp", "hs-fs", "hs-se"], about("its chip type; an image's tiboot3.bin must match it")
    ] = ""
    scratch_mib: Annotated[
        Number, about("MiB of the scratch partition made behind an image on its medium (0: none)")
    ] = 0
    device: Annotated[
        Text,
        about(
            "the disk that a system in memory writes over the network, e.g. /dev/mmcblk0; "
            "the strategy's media.network starts that system"
        ),
    ] = ""
    command: Annotated[
        Text,
        about(
            "the lab's own command that writes {image} to the board (snagboot, a flasher); "
            "the power is off before and after"
        ),
    ] = ""


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All options of a board, by section."""

    board: General
    boot: Boot
    system: System = System()
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
    image: Image = Image()
    absent: Annotated[
        dict[str, Text], about("features and benchmarks that the board cannot have, each with the reason")
    ] = msgspec.field(default_factory=dict)
    goals: Annotated[dict[str, Text], about("goals of the lab: figures, each with its limit and owner")] = (
        msgspec.field(default_factory=dict)
    )

    def cable(self, section: str) -> Cable:
        """The cable to the tester that a section describes; raises TypeError for other sections."""
        found = getattr(self, section)
        if isinstance(found, Pcie):
            return found.cable
        if isinstance(found, Cable):
            return found
        raise TypeError(f"{section} has no cable")


MAPPINGS = {"absent": "the reason, as one sentence", "goals": "the goal, as `at least 55 MB/s, owner NAME`"}
"""Parts of the options that are no sections: their words are free, and what each one's text is."""
ABSENT = "absent"
"""Section of features and benchmarks that the board cannot have, each with the reason."""
