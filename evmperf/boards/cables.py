"""The options of cables to the tester, and of what a board has at its end of them."""

from typing import Annotated, Literal

from evmperf.boards.section import Count, Number, Section, Text, about


class Cable(Section, frozen=True):
    """A cable to the tester."""

    interface: Annotated[Text, about("the network interface under Linux, e.g. eth0")] = ""
    board_address: Annotated[
        Text, about("its address with the prefix length, e.g. 192.168.100.2/24; set if it is missing")
    ] = ""
    tester_address: Annotated[Text, about("the tester's address at the cable's other end")] = ""
    link_mbit: Annotated[Number, about("required link speed, in Mbit/s (0: not checked)")] = 0


class Ethernet(Cable, frozen=True):
    """A port of the board, with its cable."""

    rx_usecs: Annotated[Count, about("interrupt pacing: microseconds between receive interrupts")] = 500
    second_interface: Annotated[Text, about("another port of the same kind; frames are forwarded to it")] = ""
    forwarding: Annotated[
        Literal["hardware", "software"], about("whether its ports can forward by themselves")
    ] = "hardware"
    tester_interfaces: Annotated[
        tuple[str, ...], about("the tester's interfaces on the cables of both ports, lent to the board")
    ] = ()


class Ipsec(Cable, frozen=True):
    """A port of the board that talks IPsec to the tester."""

    accelerator: Annotated[
        Text, about("part of the crypto accelerator's driver names in /proc/crypto, e.g. sa2ul")
    ] = ""
    accelerator_module: Annotated[
        Text,
        about(
            "the kernel module of these drivers, as in /sys/module: loaded for ipsec_hw, "
            "removed for ipsec_sw, and restored"
        ),
    ] = ""
    accelerator_algorithms: Annotated[
        tuple[str, ...], about("rows of ipsec_hw that the accelerator computes, if not all")
    ] = ()


class Pcie(Section, frozen=True):
    """What is in the PCIe slot: an NVMe disk, or a network card with a cable to the tester."""

    scratch: Annotated[Text, about("the SSD's partition that benchmarks may overwrite")] = ""
    eth_interface: Annotated[Text, about("the card's network interface under Linux, e.g. enp1s0")] = ""
    eth_board_address: Annotated[Text, about("its address with the prefix length; set if it is missing")] = ""
    eth_tester_address: Annotated[Text, about("the tester's address at the cable's other end")] = ""
    eth_link_mbit: Annotated[Number, about("required link speed, in Mbit/s (0: not checked)")] = 0

    @property
    def cable(self) -> Cable:
        """The network card's."""
        return Cable(
            interface=self.eth_interface,
            board_address=self.eth_board_address,
            tester_address=self.eth_tester_address,
            link_mbit=self.eth_link_mbit,
        )
