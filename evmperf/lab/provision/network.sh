# Functions for the system in memory, a busybox. Set before: device; for install also url, silence (s), whole and rest: mebibytes of the image, and bytes behind them.
look() {
  cat /sys/class/block/${device#/dev/}/size /proc/mounts
  echo type $(cat /sys/class/block/${device#/dev/}/device/type)
}
received() {
  cat /sys/class/net/*/statistics/rx_bytes | {
    n=0; while read -r bytes; do n=$((n + bytes)); done; echo $n
  }
}
watch_over() { # PID: ends it when nothing comes any more
  before=$(received)
  while sleep $silence; kill -0 $1; do
    now=$(received)
    [ $((now - before)) -gt 65536 ] || {
      # Said first: who is killed is waited for, and then this one is ended.
      echo "the server said nothing for $silence s"; kill $1; break
    }
    before=$now
  done
}
complaint() { # WORD: what dd said of a fault
  ! grep -q ^dd: said || echo "cannot $1: $(grep -m 1 ^dd: said)"
}
install() { # prints the disk's SHA-256, or why there is none
  set -o pipefail
  cd /tmp
  : >silence
  (
    # Not wget's own -T: a busybox that is built without it crashes of that (CVE-2026-76014).
    wget -q -t 1 -O - "$url" &
    web=$!
    watch_over $web >silence 2>/dev/null </dev/null &
    wait $web; code=$?
    kill $!; exit $code
  ) | dd of=$device bs=1M iflag=fullblock conv=fsync 2>said || { complaint write; cat silence; return; }
  sync; echo 3 >/proc/sys/vm/drop_caches
  # busybox's head counts byte by byte: it gets no more than what is left of a mebibyte.
  {
    dd if=$device bs=1M count=$whole 2>said
    dd if=$device bs=1M skip=$whole count=1 2>>said | head -c $rest
  } | sha256sum
  complaint read
}
