#: controller
# Sets the controller to its internal loopback.
d=/sys/class/net/@i; [ -e $d ] || no "the board has no @i: enable a CAN controller in its device tree";
[ $(($(cat $d/flags) & 1)) = 0 ] || no "@i is up: somebody uses it";
ip link set @i type can bitrate @bitrate dbitrate @data_bitrate fd on loopback on ||
no "@i cannot do CAN FD or loopback"; undo "ip link set @i type can fd off loopback off";
ip link set @i up || exit 3; undo "ip link set @i down"

#: virtual
[ ! -e /sys/class/net/@i ] || ip link del @i; modprobe -aq vcan can-raw;
ip link add @i type vcan || exit 3; undo "ip link del @i"; ip link set @i mtu 72 up
