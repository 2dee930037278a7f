#!/bin/sh
rm -f /root/www/ready
until ip addr add 192.168.100.2/24 dev eth0; do usleep 20000; done
ip link set eth0 up
usleep 400000
httpd -p 8080 -h /root/www
usleep 300000
touch /root/www/ready
usleep 300000
read up _ </proc/uptime
echo "${up%.*}${up#*.}0000" >/run/unit
echo "unit is active" >/dev/console
stty opost </dev/console
read told _ </proc/uptime
echo "unit told between $up and $told" >/dev/console
usleep 200000
echo "app is ready" >/dev/console
