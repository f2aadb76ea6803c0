#!/bin/bash
# shellcheck disable=SC1091,SC2086
# dist/systemd/nicpin-watch.service from boot on: after each event that undoes affinity the plan is back. With `brief`:
# those that matter most, --guard in the unit, and kill -9. Needs ethtool.
. /harness/lib.sh
. /payload/assert.sh
. /payload/watch-lib.sh
BRIEF=${1:-}

section "boot"
links() { journalctl --boot --dmesg --output short-monotonic --no-hostname | grep -E 'renamed from|[Ll]ink.* up' | tail -n 8; }
poll 60 systemctl --quiet is-active multi-user.target
milliseconds_of() { awk -v line="$1" 'NR == line {print int($1 * 1000)}' /run/boot-check; }
late=$(($(milliseconds_of 2) - $(milliseconds_of 1)))
echo "as planned $late ms after network-online.target, which was reached at $(milliseconds_of 1) ms"
at_least "ms left of $LIMIT from network-online.target to the plan" 0 $((LIMIT - late))
[ $late -le $LIMIT ] || { links; journal | tail -n 12; tail -n 3 /run/boot-differed; }
systemd-analyze --no-pager critical-chain network-online.target > /tmp/chain
equal "nicpin in the critical chain" "" "$(grep nicpin /tmp/chain)"
expect 0 systemd-analyze security --offline=true --threshold=20 --no-pager /etc/systemd/system/$UNIT
grep 'Overall exposure' "$OUT"
expect 0 systemd-analyze verify --man=no /etc/systemd/system/$UNIT
equal "complaints about the unit" "" "$(cat "$OUT" "$ERR")"
poll 30 quiet
expect 0 nicpin check --exact
systemctl status --no-pager --lines=0 $UNIT | grep -E 'Active|Status'
expect 0 nicpin status
contains "status" "watcher     runs since" "$OUT"
grep -A6 '^watcher' "$OUT"

section "events"
moved_while_down() { # NIC
  fresh
  ip link set dev "$1" down; poll 20 quiet; spoil "$1"
  corrected "moved while down, then up, $1" ip link set dev "$1" up
}
# The self-test's verdict is that of the emulation.
reset() { spoil "$1"; ethtool -t "$1" offline; true; }
ring() { spoil "$1"; ethtool -G "$1" rx 512; }
mtu() { spoil "$1"; ip link set dev "$1" mtu 1400; }
remove_and_rescan() { echo 1 > "$(pci nic2)/remove"; sleep 0.5; echo 1 > /sys/bus/pci/rescan; poll 10 is_open nic2; }
# A clock may be wrong by decades; a time beyond 32 bits of seconds is tried only once.
in_2040() {
  local before
  fresh
  corrected "the clock is set to 2040" date --set @2208988800
  before=$(runs); sleep 6
  equal "runs within 6 s of that" "$before" "$(runs)"
}
reload() { modprobe -r e1000e; modprobe e1000e; poll 10 is_open nic3; }

fresh
corrected "ethtool -L, virtio" ethtool -L nic0 combined 2
fresh
corrected "ethtool -L back, virtio" ethtool -L nic0 combined 4
fresh
corrected "unbind and bind, igb" rebind nic1
fresh
corrected "CPU 3 offline" cpu3 0
fresh
corrected "CPU 3 online" cpu3 1
moved_while_down nic1
fresh
corrected "suspend and resume (pm_test)" suspend
if [ -n "$BRIEF" ]; then
  section "--guard, and kill -9"
  guarded --guard
  corrected "another program writes, --guard" spoil nic3
  unguarded; fresh
  pid=$(watcher_pid); kill -9 "$pid"
  other() { local now; now=$(watcher_pid); [ "$now" != 0 ] && [ "$now" != "$pid" ]; }
  holds "it is started again" poll 20 other
  poll 20 more_runs 0; poll 20 quiet
  expect 0 nicpin check --exact
  in_2040
  finish
fi

fresh
corrected "ethtool -L, igb" ethtool -L nic1 combined 3
fresh
corrected "ethtool -L back, igb" ethtool -L nic1 combined 4
for nic in nic0 nic2 nic3; do fresh; corrected "unbind and bind, $nic" rebind $nic; done
for nic in nic0 nic2 nic3; do moved_while_down $nic; done
fresh
corrected "driver reset (self test), igb" reset nic1
fresh
corrected "driver reset (self test), e1000e" reset nic3
fresh
corrected "ring size, igb" ring nic1
fresh
corrected "MTU, vmxnet3" mtu nic2
fresh
corrected "PCI remove and rescan, vmxnet3" remove_and_rescan
fresh
corrected "driver reload, e1000e" reload
in_2040
finish
