#: again
# Failed, it prints the error in the file.
n=0;
until (@test); do
  r=$?; grep -qs "Connection refused" "$OUT/@name" && [ $n -lt 3 ] ||
  { sed -n 's/.*"error":[[:space:]]*//p' "$OUT/@name"; exit $r; };
  n=$((n + 1)); sleep 0.3;
done
