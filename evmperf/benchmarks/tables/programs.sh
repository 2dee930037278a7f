#: dhrystone
# Notes cpufreq's clocks under the load of a command every second.
{ n=0; while [ $n -lt 900 ]; do
  cat /sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq; sleep 1; n=$((n+1));
done; } >"$OUT/@clock_file" 2>/dev/null & w=$!;
@command; r=$?; kill $w; wait $w 2>/dev/null; exit $r
