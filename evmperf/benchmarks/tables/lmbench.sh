#: with_server
# Runs a command beside the program's server, which must listen before and after it.
@program -s; n=0;
until @listens; do
  n=$((n+1)); [ $n -lt 50 ] || { echo "the server of @program does not listen"; exit 1; }; sleep 0.1;
done;
@command; r=$?; @listens || { echo "the server of @program is gone"; exit 1; }; exit $r

#: listens
grep -q ":@port 00000000:0000 0A" /proc/net/tcp
