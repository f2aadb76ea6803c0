#!/bin/busybox sh
# shellcheck shell=dash
# /init of the guest (process 1): mounts, modules, names of the cards, the script, its status, off.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm; mount -t devpts devpts /dev/pts; mount -t tmpfs -o mode=755 tmpfs /run; mount -t tmpfs tmpfs /tmp
chmod 1777 /tmp; mkdir -p /run/lock; [ -e /var/run/. ] || ln -s /run /var/run
for t in ttyS1 ttyS2 ttyS3; do stty -F /dev/$t raw -echo 2>/dev/null; done
uptime() { cut -d' ' -f1 /proc/uptime; }
echo "READY $(uptime)" > /dev/ttyS2
# shellcheck disable=SC1091
. /harness/env
# shellcheck disable=SC1091
[ ! -e /harness/system ] || . /harness/system   # does not come back
for m in $MODULES; do modprobe "$m" 2>/dev/null; done
ip link set dev lo up
# Names of cards come from the topology: find each by MAC, rename it, set it up.
NICS=
want=$(wc -l < /harness/nics); n=0
while [ $n -lt 100 ]; do
  have=$(cat /sys/class/net/*/address | grep -c '^52:54:00:12:34:'); [ "$have" -ge "$want" ] && break
  usleep 50000; n=$((n + 1))
done
while read -r mac name; do
  for d in /sys/class/net/*; do
    [ "$(cat "$d/address")" = "$mac" ] || continue
    ip link set dev "${d##*/}" name "$name" && NICS="$NICS $name"
    [ "$NIC_UP" = 1 ] && ip link set dev "$name" up
  done
done < /harness/nics
export NICS="${NICS# }" TOPOLOGY
echo "SCRIPT $(uptime)" > /dev/ttyS2
cd /root || exit
/harness/script "$@" </dev/null >/dev/ttyS1 2>&1
rc=$?
[ -n "$(ls -A /out)" ] && tar -C /out -cz . > /dev/ttyS3
echo "STATUS $rc $(uptime)" > /dev/ttyS2
# leave through isa-debug-exit: an orderly power off costs 1-2 s in driver shutdown
printf '\0' | dd of=/dev/port bs=1 seek=1281 conv=notrunc 2>/dev/null
poweroff -f
