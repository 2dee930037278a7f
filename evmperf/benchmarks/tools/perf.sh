# perf(1) of all CPUs while a command runs, by the clock of the CPUs, which every machine has; the counters of
# cycles and instructions beside it. Stacks are folded as Brendan Gregg's stackcollapse-perf.pl does, with their
# counts in front. No tab is typed: a console would complete a word.

#: around
command -v perf >/dev/null || { echo "perf is not on the board: its image needs linux-perf (TI's images have it)"; exit 127; };
rm -f $F/perf.data;
perf stat -a -x, -e cycles,instructions -o "$OUT/@counts" >/dev/null 2>&1 & s=$!;
perf record -q -a -g -e cpu-clock -F @hertz -o $F/perf.data >$F/perf.log 2>&1 & p=$!;
while kill -0 $p 2>/dev/null && [ ! -s $F/perf.data ]; do sleep 0.1; done;
(eval @command); r=$?;
kill -INT $p $s 2>/dev/null; wait $p; wait $s;
perf script -i $F/perf.data -F comm,ip,sym,dso 2>>$F/perf.log | awk '@fold' | sort -nr | head -n @lines >"$OUT/@folded";
[ -s "$OUT/@folded" ] || tail -n 1 $F/perf.log >"$OUT/@said";
rm -f $F/perf.data; exit $r

#: fold
function put(l, i) { if (n) { l = c; for (i = n; i; i--) l = l ";" f[i]; k[l]++ } n = 0 }
/^[^ \t]/ { put(); c = $0; sub(/[ \t]+$/, "", c); gsub(/[; \t]/, "_", c); next }
NF > 1 { s = $2; sub(/[+]0x.*/, "", s); if (s == "[unknown]") { s = $NF; gsub(/[()]/, "", s); sub(/.*\//, "", s); s = "[" s "]" } gsub(/;/, ":", s); f[++n] = s }
END { put(); for (l in k) print k[l] "\t" l }
