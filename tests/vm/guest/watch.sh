#!/bin/bash
# shellcheck disable=SC1091,SC2086
# dist/systemd/nicpin-watch.service from boot on: after each event that undoes affinity the plan is back. Needs ethtool.
. /harness/lib.sh
. /payload/assert.sh
. /payload/watch-lib.sh

section "boot"
# Emulation stretches the boot over more than six groups of events, and then the last run has to wait for its turn.
echo "when network-online.target was reached: $(tail -n 1 /run/boot-check)"
poll 60 as_before || failed "the plan is not reached after the boot"
systemd-analyze --no-pager critical-chain network-online.target > /tmp/chain
equal "nicpin in the critical chain" "" "$(grep nicpin /tmp/chain)"
cat /tmp/chain
expect 0 systemd-analyze security --offline=true --threshold=20 --no-pager /etc/systemd/system/$UNIT
grep 'Overall exposure' "$OUT"
expect 0 systemd-analyze verify --man=no /etc/systemd/system/$UNIT
equal "complaints about the unit" "" "$(cat "$OUT" "$ERR")"
poll 30 quiet
expect 0 nicpin check
systemctl status --no-pager --lines=0 $UNIT | grep -E 'Active|Status'
expect 0 nicpin status
contains "status" "watcher     runs since" "$OUT"
grep -A6 '^watcher' "$OUT"
snapshot /tmp/planned

section "events"
fresh
corrected "ethtool -L, virtio" ethtool -L nic0 combined 2
fresh
corrected "ethtool -L back, virtio" ethtool -L nic0 combined 4
fresh
corrected "ethtool -L, igb" ethtool -L nic1 combined 3
fresh
fresh
corrected "ethtool -L back, igb" ethtool -L nic1 combined 4
rebind() { # NIC
  local device driver
  device=$(readlink -f "/sys/class/net/$1/device") driver=$(readlink -f "$device/driver")
  echo "${device##*/}" > "$driver/unbind"; echo "${device##*/}" > "$driver/bind"
}
for nic in nic0 nic1 nic2 nic3; do fresh; corrected "unbind and bind, $nic" rebind $nic; done
fresh
corrected "CPU 3 offline" sh -c 'echo 0 > /sys/devices/system/cpu/cpu3/online'
fresh
corrected "CPU 3 online" sh -c 'echo 1 > /sys/devices/system/cpu/cpu3/online'
for nic in nic0 nic1 nic2 nic3; do
  fresh
  ip link set dev $nic down; poll 20 quiet; spoil $nic
  sleep 11 # until another run is allowed: igb and e1000e announce their carrier apart
  corrected "moved while down, then up, $nic" ip link set dev $nic up
done
fresh
# Its verdict is that of the emulation.
reset() { spoil "$1"; ethtool -t "$1" offline; true; }
corrected "driver reset (self test), igb" reset nic1
fresh
corrected "ring size, igb" sh -c '. /harness/lib.sh; . /payload/watch-lib.sh; spoil nic1; ethtool -G nic1 rx 512'
fresh
corrected "driver reset (self test), e1000e" reset nic3
fresh
corrected "MTU, vmxnet3" sh -c '. /harness/lib.sh; . /payload/watch-lib.sh; spoil nic2; ip link set dev nic2 mtu 1400'
fresh
remove_and_rescan() { echo 1 > "$(pci nic2)/remove"; sleep 0.5; echo 1 > /sys/bus/pci/rescan; }
corrected "PCI remove and rescan, vmxnet3" remove_and_rescan
fresh
reload() { modprobe -r e1000e; modprobe e1000e; }
corrected "driver reload, e1000e" reload
fresh
echo core > /sys/power/pm_test
corrected "suspend and resume (pm_test)" sh -c 'echo mem > /sys/power/state'
echo none > /sys/power/pm_test

finish
