#!/bin/sh
# shellcheck shell=dash disable=SC1091
# four-node: a card gets another number of channels, and gets its own back. IRQ numbers change with them (igb) or
# queues go idle (virtio).
. /harness/lib.sh
. /payload/assert.sh

queues() { echo "$(find "/sys/class/net/$1/queues/" -name 'rx-*' | wc -l) rx, $(find "/sys/class/net/$1/queues/" -name 'tx-*' | wc -l) tx"; }

# by_name FILE: the snapshot with vectors by the names of their handlers
by_name() {
  awk '$NF ~ /^(nic|virtio)/ {print $1 + 0, $NF}' /proc/interrupts | while read -r irq name; do
    echo "$name:$(cat "/proc/irq/$irq/smp_affinity")"
  done | sort > "$1"
  snapshot /tmp/snapshot; grep -v ^/proc/irq /tmp/snapshot >> "$1"
}

by_name /tmp/before
for card in "nic0 4" "nic1 8"; do
  nic=${card% *} own=${card#* }
  equal "queues of $nic" "$own rx, $own tx" "$(queues "$nic")"
  expect 64 nicpin plan "$nic" --channels 2 --format sh
  expect 0 nicpin plan "$nic" --channels 2
  contains "the command in the plan" "ethtool -L $nic combined 2" "$OUT"
  expect 2 nicpin check --exact "$nic" --channels 2
  equal "queues of $nic after plan and check" "$own rx, $own tx" "$(queues "$nic")"
  expect 0 nicpin apply "$nic" --channels 2
  equal "queues of $nic after apply" "2 rx, 2 tx" "$(queues "$nic")"
  expect 0 nicpin check --exact "$nic" --channels 2
  expect 0 nicpin apply "$nic" --channels 2
  equal "values changed by a second apply" 0 "$(number changed)"
  expect 0 nicpin plan "$nic" --channels 2 --format json; cp "$OUT" /tmp/plan.json
  for queue in 0 1; do
    at_least "vectors of $nic queue $queue" 1 "$(vectors /tmp/plan.json | grep -c -E " (combined|rx) $queue ")"
  done
done
# A driver with a fixed number refuses the request, and nothing is written.
by_name /tmp/with-channels
expect 64 nicpin apply nic2 --channels 2
contains "why it is refused" "the driver has a fixed number" "$ERR"
by_name /tmp/now; same_file "the machine after a refused request" /tmp/with-channels /tmp/now

expect 0 nicpin restore
equal "queues of nic0 after restore" "4 rx, 4 tx" "$(queues nic0)"
equal "queues of nic1 after restore" "8 rx, 8 tx" "$(queues nic1)"
by_name /tmp/now; same_file "the machine after restore" /tmp/before /tmp/now
expect 0 nicpin restore --json
contains "a second restore" '"results": []' "$OUT"
finish
