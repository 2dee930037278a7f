#: forget
# A killed run may have left its disk plugged in, and mounted.
if mountpoint -q @folder; then umount @folder || exit; fi;
if [ -d @folder ]; then rmdir @folder; fi

#: remove
# Takes the gadget away, whole or half made: a killed run may have left any of its parts.
if [ -d @gadget ]; then
  cd @gadget;
  if [ -n "$(cat UDC)" ]; then echo '' >UDC || exit; fi;
  rm -f configs/c.1/mass_storage.0;
  for d in configs/c.1 functions/mass_storage.0 strings/0x409; do
    if [ -d $d ]; then rmdir $d || exit; fi;
  done;
  cd /; rmdir @gadget || exit;
fi;
rm -f @backing@unload

#: unload
; if [ -d /sys/module/@module ]; then modprobe -r @module; fi

#: udc
set -- /sys/class/udc/*; udc=${1##*/};
[ $# = 1 ] || {
  echo "several USB device controllers ($*): name one in usb.gadget_controller of the board file"; exit 3;
}

#: plug
# Makes the disk and the gadget; `load` loads the controller's module, `udc` sets `$udc`.
@remove; set -e; @{load}@{udc};
[ -e "/sys/class/udc/$udc" ] ||
{ echo "no USB device controller: check that the port is in peripheral mode"; exit 3; };
# Built in, it is no module.
modprobe -q usb_f_mass_storage || true;
mountpoint -q @configfs || mount -t configfs configfs @configfs;
truncate -s @{mib}M @backing; mkfs.vfat @backing >/dev/null;
mkdir @gadget; cd @gadget; echo 0x1d6b >idVendor; echo 0x0104 >idProduct;
[ ! -e max_speed ] || echo @{speed}-speed >max_speed;
mkdir strings/0x409; echo @serial >strings/0x409/serialnumber;
mkdir functions/mass_storage.0; echo @backing >functions/mass_storage.0/lun.0/file;
mkdir configs/c.1; ln -s functions/mass_storage.0 configs/c.1/; echo $udc >UDC

#: find
# Sets `disk` to the disk of that serial number; fails at another speed than `mbit`.
tries=@wait_s;
while :; do
  set --; speed=;
  for block in /sys/block/sd*; do
    d=$(readlink -f "$block/device" || true);
    until [ -z "$d" ] || [ -r "$d/serial" ]; do d=${d%/*}; done;
    if [ -n "$d" ] && [ "$(cat "$d/serial")" = @serial ]; then
      set -- "$@@" "${block##*/}"; speed=$(cat "$d/speed");
    fi;
  done;
  [ $# = 0 ] && [ $tries -gt 0 ] || break;
  tries=$((tries - 1)); sleep 1;
done;
[ $# = 1 ] || {
  echo "$# USB disks with the serial number @serial after @wait_s s instead of one: check its cable to the board";
  exit 3;
};
disk=$1;
[ "$speed" = @mbit ] || { echo "the disk is connected at $speed Mbit/s instead of @mbit"; exit 3; };
# Hot plug scripts mount what is plugged in, and with sync.
while grep -q "^/dev/$disk " /proc/mounts; do umount "/dev/$disk"; done

#: mount
set -e; @find; mkdir -p @folder; mount -t vfat /dev/$disk @folder

#: before_read
@mount; dd if=/dev/zero of=@file bs=1M count=@blocks conv=fsync

#: before_write
@mount; true

#: read
echo 3 >/proc/sys/vm/drop_caches; dd if=@file of=/dev/null bs=1M count=@blocks

#: write
rm -f @file; dd if=/dev/zero of=@file bs=1M count=@blocks oflag=direct
