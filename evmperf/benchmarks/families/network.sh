#: changing
# A step that changes something: `no REASON` ends it, `undo COMMAND` is carried out later. Undoing is noted
# after the change: before it, what somebody else has set up could be undone.
no() { echo "$*"; exit 3; };
undo_file=${OUT%/*}/undo;
undo() {
  { echo "$1"; [ ! -e $undo_file ] || cat $undo_file; } >$undo_file.new && mv $undo_file.new $undo_file;
};
@command

#: put_back
f=${OUT%/*}/undo;
[ ! -e $f ] || {
  r=0;
  while read -r line; do sh -c "$line" || { r=1; echo "could not be put back: $line"; }; done <$f;
  rm $f; exit $r;
}

#: prepare
# Brings up the board's interface `i`; `speed` is the text below, or nothing.
[ -e @device ] || no "the board has no network interface @i: correct options.@section in the board file";
[ $(($(cat @device/flags) & 1)) = 1 ] || { ip link set @i up || exit 3; undo "ip link set @i down"; };
n=0;
until [ "$(cat @device/carrier)" = 1 ]; do
  [ $n -lt @tries ] || no "@i has no carrier: check the cable and that its other end is up";
  n=$((n + 1)); sleep 0.2;
done;
m=$(cat @device/mtu);
[ $m = @mtu ] || { ip link set @i mtu @mtu || exit 3; undo "ip link set @i mtu $m"; };
@speed
ip -o addr show dev @i | grep -qF " @address " ||
{ ip addr add @address dev @i || exit 3; undo "ip addr del @address dev @i"; };
case "$(ip -o route get @tester)" in
  *" dev @i "*) ;;
  *) no "the route to @tester does not use @i: another interface of the board has an address in that network";;
esac;
# The first packet after a link came up may get lost.
p='ping -q -W 2 @tester'; $p -c 1 >/dev/null || $p -c 5 >/dev/null ||
no "the tester does not answer at @tester over @i: check its address and cable"

#: speed
s=$(cat @device/speed);
[ "$s" = @mbit ] || no "@i runs at $s instead of @mbit Mbit/s: check the cable and its other end";

#: start
# Starts a server, and waits until it listens (proc(5): local address, remote address, 0A).
@stop;
@listening && no "port @port of the @where is taken: measure again";
setsid @server >@{file}.log 2>&1 & p=$!; echo $p >@file; n=0;
until @listening; do
  kill -0 $p || no "@tool does not start on the @where: $(tail -n 1 @{file}.log)";
  [ $n -lt @tries ] || no "@tool on the @where does not listen"; n=$((n + 1)); sleep 0.1;
done

#: listening
grep -qs ':@hex [0-9A-F]*:0000 0A ' /proc/net/tcp /proc/net/tcp6

#: stop
# A killed server is waited for, so that its port is free again.
if [ -e @file ]; then
  read -r g <@file; kill -9 -$g 2>/dev/null; n=0;
  while kill -0 $g 2>/dev/null && [ $n -lt 50 ]; do n=$((n + 1)); sleep 0.1; done;
  rm -f @file @{file}.log;
fi
