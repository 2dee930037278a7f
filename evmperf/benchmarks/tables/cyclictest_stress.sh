#: under_stress
stress-ng --cpu-method=all -c 4 >/dev/null 2>&1 & p=$!; echo $p >@pid;
cyclictest -m -Sp80 -D@duration -h400 -i200 -M -q --json="$OUT/@json_file" >/dev/null; r=$?;
kill $p || { echo "stress-ng ended before cyclictest did"; r=1; };
wait $p; rm -f @pid; exit $r

#: end
if [ -e @pid ]; then kill $(cat @pid); rm -f @pid; fi; true
