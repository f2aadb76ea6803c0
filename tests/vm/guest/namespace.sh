#!/bin/sh
# shellcheck shell=dash disable=SC1091,SC2012,SC2045
# namespace: the interface of an igb goes to another network namespace after apply, under the name of another one here.
# Its function is planned, judged, repaired and restored by its PCI address, and by its name when it is back.
. /harness/lib.sh
. /payload/assert.sh
export PATH=$PATH:/usr/bin:/usr/sbin

device=$(basename "$(pci nic1)")
# The first IRQ is for control, and stays unchanged.
queue_irqs() { ls "/sys/bus/pci/devices/$device/msi_irqs" | sort -n | tail -n +2; }
affinities() { for irq in $(queue_irqs); do cat "/proc/irq/$irq/smp_affinity" 2>/dev/null; done; }
has_irqs() { [ "$(affinities | wc -l)" -gt 1 ]; }
move() { for irq in $(queue_irqs); do echo "$1" > "/proc/irq/$irq/smp_affinity_list" 2>/dev/null; done; true; }
affinities > /tmp/first
snapshot /tmp/before
expect 0 nicpin apply
expect 0 nicpin check --exact

unshare -n sleep 100000 & NSPID=$!
poll 10 elsewhere
ip link set dev nic1 netns $NSPID
nicpin plan > /tmp/plan; contains "a plan before it is set up there" "$device (driver igb, no interface here)" /tmp/plan
in_ns ip link set dev nic1 name nic0
in_ns ip link set dev nic0 up
holds "it has IRQs there" poll 10 has_irqs
# Vectors on its node are moved only if it is selected; RPS of others goes where they are not.
expect 0 nicpin apply "pci:$device"
expect 0 nicpin apply
expect 0 nicpin check --exact
nicpin plan > /tmp/plan; contains "the plan" "its interface is in another network namespace" /tmp/plan
affinities > /tmp/planned

last=$(sed 's/.*[-,]//' /sys/devices/system/cpu/online)
move "$last"
# A vector moves at its next interrupt, or when it is requested again.
in_ns ip link set dev nic0 down; in_ns ip link set dev nic0 up
poll 10 has_irqs
# Linux 7 gives vectors that are requested again their first affinity: they move at an interrupt of a transmit queue then.
move "$last"
in_ns ip address add 192.0.2.1/24 dev nic0
in_ns ping -c 3 -W 1 192.0.2.2 > /dev/null 2>&1
expect 2 nicpin check
contains "check" "$device" "$OUT"
expect 0 nicpin apply "pci:$device"
affinities > /tmp/again; same_file "its IRQs after apply" /tmp/planned /tmp/again
# Its control IRQ is on another CPU now, to which no RPS goes.
expect 0 nicpin apply
expect 0 nicpin check --exact

# Its queues are out of reach: their settings are kept for the next restore.
expect 0 nicpin restore
contains "restore" "kept for the next restore" "$OUT"
affinities > /tmp/again; same_file "its IRQs after restore" /tmp/first /tmp/again
in_ns ip link set dev nic0 down
in_ns ip link set dev nic0 name nic1
in_ns ip link set dev nic1 netns 1
ip link set dev nic1 up
poll 10 has_irqs
expect 0 nicpin restore
snapshot /tmp/after
grep -v '^/proc/irq' /tmp/before > /tmp/before.queues; grep -v '^/proc/irq' /tmp/after > /tmp/after.queues
same_file "the queues of all interfaces" /tmp/before.queues /tmp/after.queues
finish
