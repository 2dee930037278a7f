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

#: send
# Listens, sends, and counts what came back.
rm -f @log;
candump -L -d -r @memory -n @frames -T @quiet_ms @i >@log & p=$!; n=0;
until grep -qsw @i /proc/net/can/rcvlist_all; do
  kill -0 $p && [ $n -lt 50 ] || { echo "candump does not listen"; exit 1; }; n=$((n + 1)); sleep 0.1;
done;
read before <@sent; read began x </proc/uptime;
( @around ) || { kill $p; exit 1; };
wait $p || exit; read after <@sent; read ended x </proc/uptime;
{ echo "sent $((after - before))"; echo "uptime $began $ended"; @count; } >"$OUT/@text_file"

#: count
# Prints what is in candump's log of frames of so many hexadecimal digits.
awk -v digits=@digits '
  BEGIN { hex = "0123456789ABCDEF"; before = -1 }
  /^DROPCOUNT: dropped / { dropped += $3; next }
  NF != 3 { unknown++; next }
  {
    at = index($3, "##"); data = substr($3, at ? at + 3 : index($3, "#") + 1);
    number = 0;
    for (i = 7; i > 0; i -= 2)
      number = number * 256 + 16 * (index(hex, substr(data, i, 1)) - 1)
        + index(hex, substr(data, i + 1, 1)) - 1;
    if (length(data) != digits) unknown++;
    if (number <= before) disordered++;
    else lost += number - before - 1;
    before = number;
    if (!received++) first = $1 " " number;
    last = $1 " " number
  }
  END {
    print "received", received + 0; print "lost", lost + 0; print "dropped", dropped + 0;
    print "disordered", disordered + 0; print "unknown", unknown + 0;
    print "first", first; print "last", last
  }
' @log
