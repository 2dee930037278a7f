#: way
# One direction of a tunnel, on the machine `where`.
m=$(ip xfrm state add @state mode tunnel @keys 2>&1) ||
no "the kernel of the @where cannot do this kind of ESP ($m): it needs esp4 and the cipher";
undo "ip xfrm state delete @state";
m=$(ip xfrm policy add @policy tmpl src @source dst @target proto esp mode tunnel 2>&1) ||
no "the @where has an IPsec policy of its own ($m)";
undo "ip xfrm policy delete @policy"

#: state
src @source dst @target proto esp spi @spi

#: policy
src @source/32 dst @target/32 dir @direction

#: loaded
[ -d /sys/module/@module ] || { m=$(modprobe @module 2>&1) || no "$m"; undo "@unload"; }

#: unloaded
! [ -d /sys/module/@module ] || { m=$(@unload 2>&1) || no "$m"; undo "modprobe @module"; }

#: unload
# The kernel lets go of a tunnel's ciphers some time after the tunnel is gone.
for n in 1 2 3 4 5 6 7 8 9; do ! rmmod @module 2>/dev/null || exit 0; sleep 0.3; done; rmmod @module

#: in_use
# Whether the kernel uses the driver: a transformation in use counts one reference more (crypto/proc.c).
awk -v want='@accelerator' '/^driver/ { d = $3 } /^refcnt/ && index(d, want) && $3 > 1 { found = 1 }
END { exit !found }' /proc/crypto

#: accelerated
@in_use || {
  echo 'the kernel does not use @accelerator for @cipher (/proc/crypto): check that its driver is loaded';
  exit 3;
}

#: not_accelerated
! @in_use || {
  echo 'the kernel uses @accelerator for @cipher (/proc/crypto): name its module as
  options.ipsec.accelerator_module in the board file';
  exit 3;
}
