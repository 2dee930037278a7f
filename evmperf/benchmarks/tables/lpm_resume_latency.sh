#: sleep
[ -w @debug ] || {
  echo '@debug is missing: this kernel does not report the durations of its phases'; exit 3;
};
read -r evmperf_was <@debug; echo 1 >@debug; echo '@mark' >/dev/kmsg;
( @sleep_command ) >"$OUT/said" 2>&1; evmperf_status=$?; echo $evmperf_was >@debug;
[ $evmperf_status = 0 ] || { tail -n 2 "$OUT/said"; exit $evmperf_status; };
# From the last mark on: an earlier measurement's is in the log as well.
dmesg | awk 'index($0, "@mark") { t = ""; next } / PM: / { t = t $0 "\n" } END { printf "%send\n", t }'
>"$OUT/@text_file"; rm "$OUT/said"
