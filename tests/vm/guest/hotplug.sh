#!/bin/sh
# shellcheck shell=dash disable=SC1091
# four-node: each driver lets go of its device while apply runs, and virtual functions appear between plan and apply.
. /harness/lib.sh
. /payload/assert.sh

section() { echo "-- $1"; }
by_name() { sort "$1" | grep -v '^/proc/irq/'; }
snapshot /tmp/before; by_name /tmp/before > /tmp/before.queues

# bound_again DEVICE DRIVER NAME: the driver takes its device again, and the interface gets its name
bound_again() {
  echo "$1" > "/sys/bus/$BUS/drivers/$2/bind"
  named() { new=$(ls "/sys/bus/$BUS/devices/$1/net/") && [ -n "$new" ]; }
  holds "$3 comes back" poll 10 named "$1"
  [ "$new" = "$3" ] || ip link set dev "$new" name "$3"
  ip link set dev "$3" up; poll 10 links_up
}

# The driver lets go before apply reads, while it reads, while it writes, and afterwards.
for nic in nic0 nic1 nic2 nic3; do
  path=$(readlink -f "/sys/class/net/$nic/device")
  device=${path##*/} driver=$(basename "$(readlink "$path/driver")") BUS=$(basename "$(readlink "$path/subsystem")")
  section "$nic: $driver"
  results=''
  for pause in 10000 100000 150000 250000; do
    (usleep $pause; echo "$device" > "/sys/bus/$BUS/drivers/$driver/unbind") & unbinding=$!
    nicpin apply > "$OUT" 2> "$ERR"; status=$?
    wait $unbinding
    results="$results $status"
    holds "apply ends with 0 or 1 ($status) when $nic vanishes after $pause us" [ $status -le 1 ]
    [ $status = 0 ] || [ -s "$ERR" ] || contains "what apply says of it" "vanished" "$OUT"
    equal "panics" 0 "$(cat "$OUT" "$ERR" | grep -c panick)"
    expect 0 nicpin apply
    expect 0 nicpin check --exact
    bound_again "$device" "$driver" "$nic"
    expect 0 nicpin apply
    expect 0 nicpin check --exact
    expect 0 nicpin restore
    snapshot /tmp/now; by_name /tmp/now > /tmp/now.queues
    same_file "the queues after restore" /tmp/before.queues /tmp/now.queues
  done
  echo "   exit status of apply:$results"
done

section "virtual functions between plan and apply"
expect 0 nicpin plan --format json; cp "$OUT" /tmp/plan.json
snapshot /tmp/before
echo 2 > "$(pci nic1)/sriov_numvfs"
equal "virtual functions of nic1" 2 "$(cat "$(pci nic1)/sriov_numvfs")"
ip link set dev nic1 up; poll 10 links_up
nicpin apply --plan /tmp/plan.json > "$OUT" 2> "$ERR"; status=$?
echo "   exit status of apply --plan: $status"
cat "$ERR" >> "$OUT"; sed 's/^/   /' "$OUT"
if [ $status = 1 ]; then contains "what does not fit" nic1 "$OUT"; fi
expect 0 nicpin apply
expect 0 nicpin check --exact
echo 0 > "$(pci nic1)/sriov_numvfs"
ip link set dev nic1 up; poll 10 links_up
expect 0 nicpin apply
expect 0 nicpin check --exact
expect 0 nicpin restore
finish
