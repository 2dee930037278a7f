#: pace
# Sets the interrupt pacing of `i` in microseconds.
v=$(ethtool -c @i | sed -n 's/^rx-usecs:[[:space:]]*//p');
case "$v" in
  "" | *[!0-9]*) no "the driver of @i cannot pace interrupts: ethtool -c shows no rx-usecs";;
esac;
[ $v = @rx_usecs ] || {
  m=$(ethtool -C @i rx-usecs @rx_usecs 2>&1) || no "the driver of @i cannot pace interrupts: $m";
  undo "ethtool -C @i rx-usecs $v";
}
