#: kind
# Fails unless the partition (`$s` in sysfs) is on `what`, which the condition `holds` tells of its disk `$k`.
k=$s; [ ! -e $k/partition ] || k=${k%/*};
{ @holds; } 2>/dev/null || no "@partition (${k##*/}) is not on @what";

#: fits
# Fails unless a partition may be overwritten; `kind` is the text above, or nothing.
no() { echo "$*: name another scratch partition in the board file"; exit 3; };
d=$(readlink -f @partition); [ -b "$d" ] || no "@partition does not exist";
s=$(readlink -f /sys/class/block/${d##*/}); @{kind}
r=$(readlink -f /sys/dev/block/$(mountpoint -d /));
case "$r/" in "$s"/*) no "@partition holds the mounted root";; esac;
p="${d##*/} $(cd "$s" && ls -d */partition 2>/dev/null | cut -d/ -f1)";
# A device that others are built on (LVM, RAID, encryption) may hold the root indirectly.
for n in $p; do
  [ -z "$(ls /sys/class/block/$n/holders)" ] || no "@partition is in use by another";
done

#: guard
# Like `fits`, and unmounts the partition.
@fits; for n in $p; do while grep -q "^/dev/$n " /proc/mounts; do umount /dev/$n || exit 3; done; done

#: find_flash
# Sets `$n`, `$m` and `$e` to number, device and erase block (bytes) of the MTD partition `name`; fails unless
# it is one of at least `size` bytes. `listed` is its name as in /proc/mtd, `where` its option, SECTION.KEY.
no() { echo "@name $*: name another partition in options.@where"; exit 3; };
[ "$(grep -F @listed /proc/mtd | grep -c .)" = 1 ] || no "is not exactly once in /proc/mtd";
set -- $(grep -F @listed /proc/mtd); n=${1#mtd}; n=${n%:}; m=/dev/mtd$n; e=$((0x$3));
[ $((0x$2)) -ge @size ] || no "is smaller than @size bytes"

#: let_go
# Detaches our UBI device from the MTD partition `$n`, if it is attached.
if [ "$(cat /sys/class/ubi/ubi@{ubi}/mtd_num 2>/dev/null)" = $n ]; then
  ! mountpoint -q @mount_point || umount @mount_point || exit 3;
  ubidetach -d @ubi || exit 3;
fi

#: guard_flash
# Like `find_flash`, for a writable partition; detaches an UBI device of ours.
@find_flash; @let_go;
for p in /sys/class/mtd/mtd$n/mtd*/erasesize; do
  [ ! -e $p ] || no "is divided into partitions";
done;
for u in /sys/class/ubi/ubi*/mtd_num; do
  [ ! -e $u ] || [ "$(cat $u)" != $n ] || no "is attached to UBI";
done;
grep -qsE "^(/dev/)?mtd(block)?$n |^mtd:"@quoted" " /proc/mounts /proc/swaps && no "is mounted";
case "$(readlink -f /sys/dev/block/$(mountpoint -d /))" in
  */mtdblock$n) no "holds the root";;
esac

#: release
{ @find_flash; @let_go; }

#: ubifs
# A volume over all of the guarded partition.
@guard_flash; modprobe -aq ubi ubifs; ubiformat -q -y $m &&
ubiattach -m $n -d @ubi && ubimkvol /dev/ubi@ubi -N evmperf -m
