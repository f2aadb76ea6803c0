#!/bin/sh
# shellcheck shell=dash disable=SC1091
# two-node with isolcpus=6-7, nohz_full=6-7 or both: nothing goes to CPUs 6 and 7.
. /harness/lib.sh
. /payload/assert.sh

cd /sys/devices/system/cpu || exit
equal "isolated and nohz_full CPUs of this boot" 6-7 "$(cat isolated nohz_full | grep -v null | sort -u | xargs)"
snapshot /tmp/before
for scope in local all; do
  expect 0 nicpin plan --scope $scope --format json; cp "$OUT" /tmp/plan.json
  expect 0 nicpin plan --scope $scope --format sh; cp "$OUT" /tmp/plan.sh
  at_least "placed vectors ($scope)" 16 "$(vectors /tmp/plan.json | wc -l)"
  equal "vectors on isolated CPUs ($scope)" "" "$(vectors /tmp/plan.json | grep '[67]$')"
  expect 0 nicpin apply --scope $scope
  as_planned /tmp/plan.sh
  # By the kernel's own files, no vector may go to CPUs 6-7, and RPS hands them no packet.
  for irq in $(vectors /tmp/plan.json | cut -d' ' -f1); do
    equal "isolated CPUs allowed for IRQ $irq ($scope)" 0 $((0x$(cat "/proc/irq/$irq/smp_affinity") & 0xc0))
  done
  for file in /sys/class/net/nic*/queues/rx-*/rps_cpus; do
    equal "isolated CPUs in $file ($scope)" 0 $((0x$(cat "$file") & 0xc0))
  done
  expect 0 nicpin check --exact --scope $scope
done
# The kernel removes these CPUs from RPS, and with nohz_full=0,6-7 CPU 0, which it does not list.
expect 0 nicpin apply --rps 0-7
for file in /sys/class/net/nic*/queues/rx-*/rps_cpus; do
  equal "CPUs 1 to 7 in $file (rps 0-7)" $((0x3e)) $((0x$(cat "$file") & 0xfe))
done
expect 0 nicpin apply --rps 0-7
equal "values changed by a second apply" 0 "$(number changed)"
expect 0 nicpin check --exact --rps 0-7
expect 0 nicpin restore
snapshot /tmp/now; same_file "the machine after restore" /tmp/before /tmp/now
finish
