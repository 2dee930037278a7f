#: kind
# Fails unless the partition (`$s` in sysfs) is on `what`, which the condition `holds` tells of its disk `$k`.
k=$s; [ ! -e $k/partition ] || k=${k%/*};
{ @holds; } 2>/dev/null || no "$w (${k##*/}) is not on @what";

#: extent
# Fails unless the table on the disk has the partition `$s` where the kernel has it: after a change of a table in
# use they differ, and either may hold data. MBR with its logical partitions, or GPT, as the disk says it.
k=${s%/*}; t=/dev/${k##*/}; b=$(cat $k/queue/logical_block_size); i=$(cat $s/partition);
u() { od -An -v -tu$2 -j$1 -N$(($2*$3)) $t 2>/dev/null; };
x=; g=;
for o in 450 466 482 498; do
  case $(u $o 1 1) in
    *" 238") g=1;;
    *" 5"|*" 15"|*" 133") x=$(($(u $((o+4)) 4 1)));;
  esac;
done;
if [ "$(u 510 2 1)" -ne 43605 ]; then set --;
elif [ $g ]; then
  set -- $(u $((b+72)) 8 1) $(u $((b+80)) 4 2);
  [ $i -le ${2:-0} ] && set -- $(u $(($1*b+(i-1)*$3+32)) 8 2) && set -- $1 $(($2-$1+1));
elif [ $i -le 4 ]; then set -- $(u $((438+16*i)) 4 2);
else
  e=${x:-0};
  while [ $i -gt 5 ]; do set -- $(u $((e*b+470)) 4 1); e=$((x+${1:-0})); i=$((i-1)); done;
  set -- $(u $((e*b+454)) 4 2); [ -z "$x" ] || set -- $((e+$1)) $2;
fi 2>/dev/null;
[ "$((${1:-0}*b/512)) $((${2:-0}*b/512))" = "$(cat $s/start) $(cat $s/size)" ] ||
  no "the table of $t has $w elsewhere, or not, than the kernel uses (sectors $(cat $s/start)+$(cat $s/size))"
    "put the table right and reboot the board";

#: alone
# Fails unless the kernel gives `$d` to us alone, asked by the first program that is there: who mounts it, keeps a
# journal on it or swaps there has it. Opening it so changes nothing.
case "$({ python3 -c 'import os, sys; os.open(sys.argv[1], os.O_EXCL)' "$d" || mke2fs -n -F "$d" ||
  wipefs -n -a "$d"; } 2>&1 </dev/null | LC_ALL=C grep -E "[Bb]usy|in use")" in
  ?*) no "$w is in use by the kernel, which gives it to nobody else";;
esac

#: fits
# Fails unless a partition may be overwritten; `kind` is the text above, or nothing. A mount is looked for in all
# name spaces, by device number; ours is no hindrance. The node's number tells the device, not its name.
no() { echo "$1: ${2:+$2, or }name another scratch partition in the board file"; exit 3; };
w=@quoted; d=$(readlink -f "$w"); [ -b "$d" ] || no "$w does not exist";
s=$(readlink -f /sys/dev/block/$(mountpoint -x "$d"));
[ -e "$s/size" ] || no "$w is a device that the kernel does not have";
@{kind}
r=$(readlink -f /sys/dev/block/$(mountpoint -d /));
case "$r/" in "$s"/*) no "$w holds the mounted root";; esac;
p="${s##*/} $(cd "$s" && ls -d */partition 2>/dev/null | cut -d/ -f1)";
a=" $(cat $s/dev) $([ ! -e $s/partition ] || cat ${s%/*}/dev) ";
# A device that others are built on (LVM, RAID, encryption, btrfs, loops) may hold the root indirectly.
for n in $p; do
  [ -z "$(ls /sys/class/block/$n/holders)" ] || no "$w is in use by another";
  for f in /sys/fs/btrfs/*/devices/$n; do [ ! -e $f ] || no "$w is in use by btrfs"; done;
  v=$(cat /sys/class/block/$n/dev); a="$a$v ";
  m=$(cat /proc/[0-9]*/mountinfo 2>/dev/null | grep -E "^[0-9]+ [0-9]+ $v | - [^ ]+ /dev/$n " |
    cut -d" " -f5 | grep -vxF @mount_point | head -n 1);
  [ -z "$m" ] || no "$w is mounted at $m, not by evmperf" "unmount it";
  ! grep -q "^/dev/$n[[:blank:]]" /proc/swaps || no "$w is swap space in use";
done;
for f in /sys/block/loop*/loop/backing_file; do
  v=$([ ! -e $f ] || mountpoint -x "$(cat $f)" 2>/dev/null);
  case "$a" in *" ${v:-none} "*) no "$w is in use by ${f%/loop/*}" "detach it (losetup -d)";; esac;
done;
if [ -e $s/partition ]; then @extent;
elif [ "$p" != "${s##*/} " ]; then no "$w is a whole disk with partitions";
elif [ @whole = 0 ]; then
  no "$w is a whole disk" "set whole_disk: true beside it if all of it may be overwritten";
fi;
[ "$(mountpoint -d @mount_point 2>/dev/null)" = "$(cat $s/dev)" ] || @alone

#: guard
# Like `fits`, after unmounting what a killed session of ours left.
! mountpoint -q @mount_point || umount @mount_point || exit 3; @fits

#: unmount
# Unmounts our file system, and wipes its beginning: a system that mounts what it knows by itself at its next
# boot leaves it alone.
! mountpoint -q @mount_point ||
{ n=$(grep " @mount_point " /proc/mounts | tail -n 1 | cut -d" " -f1); umount @mount_point &&
  case $n in
    /dev/*) dd if=/dev/zero of=$n bs=64k count=1 conv=fsync 2>/dev/null;;
  esac; }

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
