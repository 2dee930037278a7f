"""The options of a board file: a class is a section, a field an option, the text below it its meaning, which
`vocabulary` reads. "", 0 and () mean "the file does not say"; `Board.says` tells a 0 in the file.
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

    name: Text = ""
    """The board's name in the guides, e.g. am64xx-hsevm; without one its place's or its file's."""
    title: Text = ""
    """The board's name in the guide's table of evaluation modules."""
    description: Text = ""
    """Its description in that table: revision, clock, memory."""
    profile: Literal["full", "quick"] = "full"
    """Default profile; full has the published parameters."""
    revision: Text = ""
    """Board revision, if the description does not name it."""
    release: Text = ""
    """SDK release, if the image does not name it."""
    compatible: Text = ""
    """Its name in the device tree (first of /proc/device-tree/compatible)."""
    virtual: Text = ""
    """Image variant of a virtual EVM; real boards have none."""
    tool: Literal["", "ti", "own"] = ""
    """ti measures with TI's own programs, own with evmperf's way; without it TI's where the board has them
    (LAVA jobs: evmperf's).
    """


class End(Section, frozen=True, omit_defaults=True):
    """An end of a boot: one of `line`, `ping`, `tcp`, `http`, `gpio` and `unit`."""

    line: Text = ""
    """Regular expression of a line that Linux prints on the console."""
    ping: Text = ""
    """IPv4 address that answers ping, on a cable of this machine."""
    mac: Text = ""
    """The MAC address that must answer; without it that of the first boot."""
    tcp: Text = ""
    """HOST:PORT that takes a connection."""
    http: Text = ""
    """http:// URL that answers with `status`."""
    status: Count = 200
    """HTTP status."""
    gpio: Text = ""
    """Name of a digital output driver of Labgrid's (`get()`) whose line becomes active."""
    unit: Text = ""
    """Unit of systemd with a time of `property`."""
    property: Text = "ActiveEnterTimestampMonotonic"
    """What `systemctl show -p` calls the time, in microseconds since the kernel's start."""
    interval_ms: Number = 0
    """Milliseconds between two questions to the network, or to a line: 20 if 0, to a virtual EVM's network
    200, as its answers take much of an emulated CPU.
    """
    within_s: Count = 60
    """Seconds after the prompt until when the mark must come."""


class Booting(Section, frozen=True):
    """How the board boots."""

    medium: Literal["", "sd", "emmc", "nvme", "virtio"] = ""
    """Boot medium; without one what booted is not checked."""
    power: Literal["", "switch", "hand", "reset", "none"] = ""
    """Power control, if no driver provides it: reset uses a reset line (a driver like
    DigitalOutputResetDriver) or `reboot` and U-Boot's `reset`, none leaves the board as it is found.
    """
    flow: Literal["", "falcon", "sbl"] = ""
    """What starts Linux where that is not U-Boot: falcon (SPL) or sbl (the MCU+ SDK's boot loader); boot
    times then count from the kernel's first line.
    """
    max_failures: Number = 5
    """Failed boot cycles before the board is called broken."""
    ends: dict[str, End] = msgspec.field(default_factory=dict)
    """Further ends of a boot by their names, each a metric (see boot.md)."""


class System(Section, frozen=True):
    """Programs of the system benchmarks, where they are not the guides'."""

    dhrystone: Literal["runDhrystone", "evmperf-dhrystone"] = "runDhrystone"
    """Name of the Dhrystone program."""
    whetstone: Literal["runWhetstone", "evmperf-whetstone"] = "runWhetstone"
    """Name of the Whetstone program."""
    linpack: Literal["runLinpack", "evmperf-linpack"] = "runLinpack"
    """Name of the Linpack program."""
    linpack_precision: Literal["single", "double"] = "single"
    """Precision of the runLinpack build."""
    nbench: Literal["runNBench.sh", "evmperf-nbench"] = "runNBench.sh"
    """Name of the NBench program."""
    stream: Literal["stream_c", "evmperf-stream"] = "stream_c"
    """Name of the STREAM program."""
    cores: Number = 0
    """Number of Linux cores, if CoreMark-PRO may use more than two."""
    coremark_pro: Text = "/opt/coremark-pro"
    """Folder of CoreMark-PRO."""
    multibench: Text = "/opt/multibench"
    """Folder of MultiBench."""


class Desk(Section, frozen=True):
    """What `evmperf desk` found on the board."""

    machine: Literal["", "aarch64", "armv7l", "riscv64", "x86_64"] = ""
    """The kernel's name of the processor, for evmperf's own program."""
    disks: tuple[str, ...] = ()
    """Disks that are read, each as KIND=/dev/NAME."""


class Scratch(Section, frozen=True):
    """A disk that benchmarks write."""

    scratch: Text = ""
    """The disk's partition that benchmarks may overwrite, e.g. /dev/mmcblk0p1."""
    whole_disk: bool = False
    """`scratch` is a whole disk without partitions, all of which benchmarks may overwrite."""


class Storage(Scratch, frozen=True):
    """A disk or card."""

    device: Text = ""
    """The whole device under Linux, e.g. /dev/mmcblk0."""
    uboot_device: Number = 0
    """The number of the device for U-Boot's mmc (on UFS: scsi) command."""
    uboot_partition: Text = ""
    """Label or number of the scratch partition for U-Boot's part command."""


class Card(Storage, frozen=True):
    """An SD card."""

    uboot_fat_partition: Text = ""
    """Number of a FAT partition where U-Boot may write and remove a file of up to 16 MiB, e.g. the boot
    partition.
    """


class Mtd(Section, frozen=True):
    """SPI NOR or raw NAND flash."""

    scratch: Text = ""
    """The MTD partition that benchmarks may overwrite, named as in /proc/mtd; it must not be mounted or
    attached to UBI.
    """


class Flash(Mtd, frozen=True):
    """OSPI or QSPI flash."""

    flash: Literal["", "OSPI NOR", "QSPI NAND"] = ""
    """Kind of flash, as the guides' summaries name it."""
    device: Text = ""
    """The MTD partition that is read, named as in /proc/mtd."""
    uboot_bus: Text = ""
    """Bus and chip select for U-Boot's sf probe, e.g. 0:0."""
    uboot_offset: Number = 0
    """First byte of the area that benchmarks may overwrite in U-Boot."""
    uboot_size: Number = 0
    """Size of that area in bytes (whole erase blocks)."""


class Usb(Scratch, frozen=True):
    """USB, as host of a disk and as device."""

    gadget_host: Literal["", "board", "tester"] = ""
    """The USB host of the board's gadget, a disk with the serial number evmperf- and the board's name."""
    gadget_controller: Text = ""
    """The USB device controller of that port, if /sys/class/udc has several."""
    gadget_module: Text = ""
    """The controller's kernel module, if nothing else loads it."""


class Audio(Section, frozen=True):
    """Audio; a rate that the codec replaces by another is refused."""

    playback: Text = ""
    """The ALSA device that plays, without conversion: hw:CARD,DEVICE."""
    capture: Text = ""
    """The ALSA device that records, without conversion: hw:CARD,DEVICE."""
    period_frames: Number = 0
    """Frames of a period: 256 on AM6x and J722S, 64 on other boards."""


class Can(Section, frozen=True):
    """CAN."""

    controller: Literal["can0", "vcan"] = "can0"
    """The controller; vcan is the kernel's own, without bit rates."""


class Graphics(Section, frozen=True):
    """GPU and display."""

    compositor: Text = ""
    """The systemd service of the compositor (weston); glmark2's DRM run stops it and starts it again; none if
    the board has no compositor.
    """
    renderer: Literal["gpu", "software"] = "gpu"
    """What draws."""


class Power(Section, frozen=True):
    """Low-power modes and the meter (see power.md)."""

    rails: tuple[str, ...] = ()
    """The rails that the meter reads, named as in the guide's table."""
    supply: tuple[str, ...] = ()
    """The meter's rails that together supply the board, e.g. its input; each case then has its power and
    energy.
    """
    deep_sleep_command: Text = ""
    """Puts the board into deep sleep for {seconds}, e.g. rtcwake -s {seconds} -m mem."""
    rtc_ddr_command: Text = ""
    """Leaves only RTC and DDR on for {seconds}; returns when the board is awake again."""
    mcu_only_command: Text = ""
    """The same, with only the MCU domain on."""
    io_ddr_command: Text = ""
    """The same, with only I/O and DDR on."""
    sleep_s: Count = 60
    """Seconds of one sleep, long enough for the rails to settle."""


class Cable(Section, frozen=True):
    """A cable to the tester."""

    interface: Text = ""
    """The network interface under Linux, e.g. eth0."""
    board_address: Text = ""
    """Its address with the prefix length, e.g. 192.168.100.2/24; set if it is missing."""
    tester_address: Text = ""
    """The tester's address at the cable's other end."""
    link_mbit: Number = 0
    """Required link speed, in Mbit/s (0: not checked)."""


class Ethernet(Cable, frozen=True):
    """A port of the board, with its cable."""

    rx_usecs: Count = 500
    """Interrupt pacing: microseconds between receive interrupts."""
    second_interface: Text = ""
    """Another port of the same kind; frames are forwarded to it."""
    forwarding: Literal["hardware", "software"] = "hardware"
    """Whether its ports can forward by themselves."""
    tester_interfaces: tuple[str, ...] = ()
    """The tester's interfaces on the cables of both ports, lent to the board."""


class Ipsec(Cable, frozen=True):
    """A port of the board that talks IPsec to the tester."""

    accelerator: Text = ""
    """Part of the crypto accelerator's driver names in /proc/crypto, e.g. sa2ul."""
    accelerator_module: Text = ""
    """The kernel module of these drivers, as in /sys/module: loaded for ipsec_hw, removed for ipsec_sw, and
    restored.
    """
    accelerator_algorithms: tuple[str, ...] = ()
    """Rows of ipsec_hw that the accelerator computes, if not all."""


class Pcie(Scratch, frozen=True):
    """What is in the PCIe slot: an NVMe disk, or a network card with a cable to the tester."""

    eth_interface: Text = ""
    """The card's network interface under Linux, e.g. enp1s0."""
    eth_board_address: Text = ""
    """Its address with the prefix length; set if it is missing."""
    eth_tester_address: Text = ""
    """The tester's address at the cable's other end."""
    eth_link_mbit: Number = 0
    """Required link speed, in Mbit/s (0: not checked)."""

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
    """The processors that echo messages, as in the guide's table: R5F0_0, M4F."""


class Camera(Section, frozen=True):
    """A camera."""

    device: Text = ""
    """The video device, e.g. /dev/video0."""
    sensor: Text = ""
    """The sensor, as the guide names it, e.g. ov10635."""
    setup: Text = ""
    """The command (media-ctl, v4l2-ctl) that connects the sensor to the device for {width}, {height} and
    {format} (a FourCC), if the device needs one.
    """


class Tester(Section, frozen=True):
    """The machine beside the board (see lab-set-up.md)."""

    host: Text = ""
    """Its SSH name, `local` for this machine, or `virtual` beside a virtual EVM; $EVMPERF_TESTER overrides
    it.
    """


class Provisioning(Section, frozen=True):
    """Images that `--image` puts on the board (see provisioning.md)."""

    machine: Text = ""
    """The machine name of this board's images (their /etc/hostname)."""
    device: Text = ""
    """The disk that a system in memory writes over the network, e.g. /dev/mmcblk0; the strategy's
    media.network starts that system.
    """
    command: Text = ""
    """The lab's own command that writes {image} to the board (snagboot, a flasher); the power is off before
    and after.
    """


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All options of a board, by section."""

    board: General = General()
    boot: Booting = Booting()
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
    """Features and benchmarks that the board cannot have, each with the reason."""
    goals: dict[str, Text] = msgspec.field(default_factory=dict)
    """Goals of the lab: figures, each with its limit and owner."""

    def cable(self, section: str) -> Cable:
        """The cable to the tester that a section describes; raises TypeError for other sections."""
        options = getattr(self, section)
        options = options.cable if isinstance(options, Pcie) else options
        if not isinstance(options, Cable):
            raise TypeError(f"{section} has no cable")
        return options


MAPPINGS = {"absent": "the reason, as one sentence", "goals": "the goal, as `at least 55 MB/s, owner NAME`"}
"""Parts of the options that are no sections: their words are free, and what each one's text is."""
