#: node
# Joins the ports `first` and `second` as `make` says; `hardware` is the text for each port `$p`, or `:`.
modprobe -aq bridge hsr;
for p in @first @second; do
  d=/sys/class/net/$p;
  [ -e $d ] || no "the board has no network interface $p: correct the board file";
  @hardware;
  [ $(($(cat $d/flags) & 1)) = 1 ] || { ip link set $p up || exit 3; undo "ip link set $p down"; };
done;
[ ! -e /sys/class/net/@node_name ] || ip link del @node_name;
{ ip link add @node_name @make; } || exit 3; undo "ip link del @node_name"; ip link set @node_name up

#: make_switch
type bridge && ip link set @first master @node_name && ip link set @second master @node_name

#: make_hsr
type hsr slave1 @first slave2 @second version 1

#: hardware_switch
[ -n "$(cat /sys/class/net/$p/phys_switch_id 2>/dev/null)" ] ||
no "$p does not forward in hardware: its driver is no switch"

#: hardware_hsr
for f in hsr-fwd-offload hsr-dup-offload hsr-tag-ins-offload hsr-tag-rm-offload; do
  m=$(ethtool -K $p $f on 2>&1) || no "$p has no $f ($m)"; undo "ethtool -K $p $f off";
done

#: ends
# Makes the tester both ends, with a server at the second, and waits until the first reaches it.
modprobe -aq hsr veth;
at() { nsenter -n -t $p "$@@"; };
@lend
setsid @there iperf3 -s -p @port </dev/null >/dev/null 2>&1 & undo "kill $!";
k=0;
until @here iperf3 -c @server -p @port -n 1K --connect-timeout 1000 >/dev/null 2>&1; do
  [ $k -lt 20 ] || no "no traffic passes the board: check both cables"; k=$((k + 1)); sleep 0.5;
done

#: lend
# One end: a process holds its namespace, as names would not outlive a step where the tester is a namespace.
i=@interface;
[ -e /sys/class/net/$i ] || no "the tester has no network interface $i";
had=$(ip -o -4 addr show dev $i | while read -r _ _ _ net _; do printf "%s" "ip addr add $net dev $i; "; done);
setsid unshare -n sleep 7200 </dev/null >/dev/null 2>&1 & p=$!;
echo $p >${OUT%/*}/@end; undo "kill $p";
until [ $(readlink /proc/$p/ns/net) != $(readlink /proc/$$/ns/net) ]; do sleep 0.1; done;
ip link set $i netns $p || exit 3;
undo "nsenter -n -t $p ip link set $i netns \$\$; ${had}ip link set $i up"; at ip link set $i up;
@{ring}at ip addr add @address/24 dev $i && at ip link set $i up || exit 3;

#: ring
at ip link add open type veth peer name end && at ip link set open up;
m=$(at ip link add ring type hsr slave1 $i slave2 open version 1 2>&1) ||
no "the kernel of the tester cannot do HSR ($m)"; i=ring

#: look
read u x </proc/uptime; read b </sys/class/net/@interface/statistics/rx_bytes; echo $u $b

#: watch
rm -rf @state; mkdir @state && cd @state && OUT=.;
( sleep @settle_s;
  { @look; @before; sleep @end_s; @look; sleep @within_s; @look; sleep @end_s; @after; @look; } >@text_file;
  touch done ) >/dev/null 2>&1 &

#: collect
n=0;
until [ -e @state/done ]; do
  [ $n -lt 60 ] || { echo "the watch does not end"; exit 3; }; n=$((n + 1)); sleep 1;
done;
cd @state && cp @stat_before "$OUT/@stat_before"; cp @stat_after "$OUT/@stat_after"; @frames
