#: fio
# Each size writes and then reads, over what the sizes before left; a size that fails ends it.
@prepare || exit 3;
for b in @sizes; do for rw in write read; do
  (sleep @settle_s; @watch) & @fio; r=$?; wait;
  [ $r = 0 ] || break 2; sleep 1;
done; done

#: files
# TI's program, for each size of buffer: the file is written @repeats times, then read cold, then removed.
@prepare || exit 3;
for b in @sizes; do
  head -c @source_bytes /dev/urandom >@source || exit 3;
  for n in @repeats; do @write >"$OUT/$b.write$n.txt" 2>&1 || break 2; done;
  rm -f @source; sync; umount @mount_point && echo 3 >/proc/sys/vm/drop_caches && @mount || exit 3;
  @read >"$OUT/$b.read.txt" 2>&1 || break;
  sync; echo 3 >/proc/sys/vm/drop_caches; rm -f @file;
done; true
