#!/bin/sh
# shellcheck shell=dash disable=SC1091
# four-node: what happens to cards between plan and apply, and after apply: what check says of it, and that a second
# apply fixes it. Needs ethtool.
. /harness/lib.sh
. /payload/assert.sh

P=/tmp/plan.json S=/tmp/plan.sh
section() { echo "-- $1"; }
# because REASON [INTERFACE]: check differs, for this reason and no other
because() {
  local reason=$1; shift
  expect 2 nicpin check --exact --format json "$@"
  equal "why $* differs" "$reason" "$(sed -n 's/^ *"reason": "\(.*\)".*/\1/p' "$OUT" | sort -u | xargs)"
  expect 2 nicpin check --exact -q "$@"
  equal "what check -q prints" "" "$(cat "$OUT" "$ERR")"
}
repaired() {
  expect 0 nicpin apply "$@"
  expect 0 nicpin check --exact "$@"
}
snapshot /tmp/before
expect 0 nicpin plan --format json; cp "$OUT" $P
expect 0 nicpin plan --format sh; cp "$OUT" $S

section "nothing is applied yet"
because not-applied
because not-applied nic1

section "a stored plan"
expect 0 nicpin apply --plan $P
equal "values changed" "$(writes $S | wc -l)" "$(number changed)"
as_planned $S
expect 0 nicpin apply --plan - < $P
equal "values changed by a second apply" 0 "$(number changed)"
expect 0 nicpin check --exact

section "where interrupts arrive"
connect nic1:nic7 $P
(while :; do talk 2; done) & talking=$!
expect 0 nicpin apply --prove 60 nic1
kill $talking; wait $talking 2>/dev/null
contains "the proof" "proof: proven=8 no-traffic=0 mismatch=0" "$OUT"
sed 's/^/   /' "$OUT"
disconnect
expect 0 nicpin apply --prove 1 nic2
contains "a card without traffic" " mismatch=0" "$OUT"

section "ifdown and ifup"
for nic in nic0 nic1 nic2 nic3; do ip link set dev $nic down; done
for nic in nic0 nic1 nic2 nic3; do ip link set dev $nic up; done
poll 10 links_up
snapshot /tmp/now; grep -E "$(writes $S | cut -d' ' -f1 | xargs | tr ' ' '|')" /tmp/now > /tmp/held
nicpin check --exact > /tmp/said; echo "   check after ifdown and ifup: $(tail -1 /tmp/said)"
repaired
as_planned $S

section "somebody moves a vector"
irq=$(vectors $P | awk '$2 == "nic1" && $4 == 3 {print $1}')
echo 8000 > "/proc/irq/$irq/smp_affinity"
because moved-by-other nic1
repaired

section "ethtool -L down and up"
for card in "nic0 2 4" "nic1 2 8"; do
  # shellcheck disable=SC2086
  set -- $card
  expect 0 ethtool -L "$1" combined "$2"
  because queue-count-changed "$1"
  repaired "$1"
  expect 0 ethtool -L "$1" combined "$3"
  because queue-count-changed "$1"
  repaired "$1"
done
repaired

section "a CPU goes offline after apply"
cpu=$(vectors $P | awk '$2 == "nic1" {print $5; exit}')
echo 0 > "/sys/devices/system/cpu/cpu$cpu/online"
expect 2 nicpin check --exact --json nic1
contains "the reason" '"reason": "cpu-offline"' "$OUT"
expect 1 nicpin apply --plan $P
contains "what the stored plan does not fit" "CPUs were online: 0-15, now " "$OUT"
equal "values changed by a plan that does not fit" 0 "$(number changed)"
repaired
echo 1 > "/sys/devices/system/cpu/cpu$cpu/online"
repaired
expect 0 nicpin restore

section "a driver is unbound and bound again"
expect 0 nicpin apply
device=$(basename "$(pci nic1)")
echo "$device" > /sys/bus/pci/drivers/igb/unbind
# Interfaces without a node may use the CPUs of nic1 now, which makes room for nic3's queues.
expect 0 nicpin check --exact nic0 nic2
expect 1 nicpin apply --plan $P
contains "the card that is gone" "nic1: is absent" "$OUT"
echo "$device" > /sys/bus/pci/drivers/igb/bind
named() { new=$(basename "/sys/bus/pci/devices/$device/net/"*) && [ -e "/sys/class/net/$new" ]; }
holds "the card comes back" poll 10 named
[ "$new" = nic1 ] || ip link set dev "$new" name nic1
ip link set dev nic1 up; poll 10 links_up
because irq-recreated nic1
repaired
as_planned_by_queue() { vectors $P | grep " nic1 " | cut -d' ' -f2-; }
expect 0 nicpin plan nic1 --format json
vectors "$OUT" | cut -d' ' -f2- > /tmp/new; as_planned_by_queue > /tmp/old
same_file "the plan of the card after it was bound again" /tmp/old /tmp/new
expect 0 nicpin restore

section "a card is taken out between plan and apply"
expect 0 nicpin plan --format json; cp "$OUT" $P
snapshot /tmp/now
echo 1 > "$(pci nic7)/remove"
snapshot /tmp/without
expect 1 nicpin apply --plan $P
contains "the card that is gone" "nic7: is absent" "$OUT"
equal "values changed" 0 "$(number changed)"
snapshot /tmp/now; same_file "the machine after a plan that does not fit" /tmp/without /tmp/now
expect 1 nicpin apply --plan $P --force
contains "what was left out" "left out" "$OUT"
equal "values refused" 0 "$(number refused)"
expect 0 nicpin check --exact nic0 nic1 nic2 nic3
expect 0 nicpin restore
finish
