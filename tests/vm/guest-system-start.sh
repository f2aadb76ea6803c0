#!/bin/bash
# Runs in a guest with systemd after multi-user.target: the script, its status, off; or a reboot, and all of it again.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/run/harness/bin HOME=/root
for t in ttyS1 ttyS2 ttyS3; do stty -F /dev/$t raw -echo; done
# shellcheck disable=SC1091
. /run/harness/env
NICS=$(awk '{print $2}' /run/harness/nics | xargs); export NICS TOPOLOGY
uptime() { cut -d' ' -f1 /proc/uptime; }
echo "SCRIPT $(uptime)" > /dev/ttyS2
cd /root || exit
/run/harness/script "$@" </dev/null >/dev/ttyS1 2>&1
rc=$?
[ ! -e /run/rebooting ] || exit 0
[ -z "$(ls -A /out)" ] || tar -C /out -cz . > /dev/ttyS3
echo "STATUS $rc $(uptime)" > /dev/ttyS2
printf '\0' | dd of=/dev/port bs=1 seek=1281 conv=notrunc 2>/dev/null
poweroff -f
