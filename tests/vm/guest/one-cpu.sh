#!/bin/sh
# shellcheck shell=dash disable=SC1091
# two-node with nosmp: one CPU is online, so every setting is as planned from the start.
. /harness/lib.sh
. /payload/assert.sh

equal "online CPUs" 0 "$(cat /sys/devices/system/cpu/online)"
snapshot /tmp/before
expect 0 nicpin plan --format sh
equal "writes of the plan" "" "$(writes "$OUT")"
expect 0 nicpin plan --format json; cp "$OUT" /tmp/plan.json
at_least "placed vectors" 8 "$(vectors /tmp/plan.json | wc -l)"
equal "placed vectors elsewhere than on CPU 0" "" "$(vectors /tmp/plan.json | grep -v ' 0$')"
for command in status check apply check restore; do expect 0 nicpin $command; done
snapshot /tmp/now; same_file "the machine after all" /tmp/before /tmp/now
finish
