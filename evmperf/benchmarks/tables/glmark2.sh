#: find
# Finds a Wayland compositor.
for socket in /run/wayland-? /run/user/*/wayland-?; do
  [ ! -S "$socket" ] ||
  { export XDG_RUNTIME_DIR="${socket%/*}" WAYLAND_DISPLAY="${socket##*/}"; break; };
done;
[ -n "$WAYLAND_DISPLAY" ] || { echo "no Wayland compositor runs: start it"; exit 3; }

#: stop
if systemctl is-active -q @service; then : >@stopped && systemctl stop @service; fi

#: start
if [ -e @stopped ]; then systemctl start @service && rm @stopped; fi
