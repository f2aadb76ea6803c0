#!/bin/sh
# shellcheck shell=dash disable=SC1091
# four-node: what goes wrong, or changes under nicpin's hands: read-only files, other nicpins, cards that vanish, are
# renamed or go down.
. /harness/lib.sh
. /payload/assert.sh

P=/tmp/plan.json S=/tmp/plan.sh
section() { echo "-- $1"; }
fresh_plan() {
  expect 0 nicpin plan --format json; cp "$OUT" $P
  expect 0 nicpin plan --format sh; cp "$OUT" $S
}
in_planned_state() { expect 0 nicpin check --exact; }
restored() {
  expect 0 nicpin restore
  snapshot /tmp/now; same_file "the machine after restore" /tmp/before /tmp/now
}
snapshot /tmp/before
fresh_plan
N=$(writes $S | wc -l)

section "names that match nothing"
expect 1 nicpin plan nic11
one_line "$ERR"; contains "the name" nic11 "$ERR"; contains "a candidate" nic1, "$ERR"
expect 1 nicpin apply nosuch
contains "the name" nosuch "$ERR"; contains "a candidate" " nic0," "$ERR"
expect 0 nicpin plan --if-present nosuch
snapshot /tmp/now; same_file "the machine after them" /tmp/before /tmp/now

section "read-only /proc/irq"
mount -o bind /proc/irq /proc/irq && mount -o remount,bind,ro /proc/irq
equal "a write by hand" "ERR Read-only file system" "$(try_write /proc/irq/default_smp_affinity ffff)"
expect 1 nicpin apply
cat "$OUT" "$ERR" > /tmp/said
contains "the kernel's answer" EROFS /tmp/said
contains "the file" "$(writes $S | head -1 | cut -d' ' -f1)" /tmp/said
equal "values refused" "$N" "$(number refused)"
equal "values changed" 0 "$(number changed)"
equal "messages of it" 1 "$(grep -c '^refused ' "$OUT")"
snapshot /tmp/now; same_file "the machine, which has no steering for vectors that did not move" /tmp/before /tmp/now
expect 2 nicpin check --exact
umount /proc/irq
expect 0 nicpin apply
as_planned $S
in_planned_state

section "somebody moves an interrupt"
irq=$(vectors $P | awk '$2 == "nic1" && $4 == 3 {print $1}')
echo 8000 > "/proc/irq/$irq/smp_affinity"
expect 2 nicpin check --exact -v
contains "what check names" "IRQ $irq smp_affinity" "$OUT"
contains "whose it is" nic1 "$OUT"
expect 0 nicpin apply
equal "values changed" 1 "$(number changed)"
as_planned $S
restored

section "two at once"
nicpin apply --wait 20 > /tmp/one 2>&1 & one=$!
nicpin apply --wait 20 > /tmp/two 2>&1 & two=$!
holds "one of two applies" wait $one
holds "the other of two applies" wait $two
equal "values changed by both" "0 $N" "$(sed -n 's/^plan .*changed=\([0-9]*\).*/\1/p' /tmp/one /tmp/two | sort -n | xargs)"
as_planned $S
restored

section "one waits for another"
sh -c 'exec 9<>/run/nicpin/lock; flock 9; echo "nicpin apply, process $$" >&9; echo > /tmp/held; exec sleep 1000' & holder=$!
waits() { for fd in "/proc/$1/fd/"*; do [ "$(readlink "$fd")" != /run/nicpin/lock ] || return 0; done; return 1; }
holds "another process takes the lock" poll 10 test -e /tmp/held
expect 1 nicpin apply --wait 1
one_line "$ERR"; contains "who holds the lock" "process $holder" "$ERR"
expect 2 nicpin check --exact
nicpin apply --wait 20 > /tmp/waiter 2>&1 & waiter=$!
holds "the second apply waits" poll 10 waits $waiter
snapshot /tmp/now; same_file "the machine while another process holds the lock" /tmp/before /tmp/now
kill $holder
holds "the apply that waited" wait $waiter
contains "the apply that waited" "changed=$N " /tmp/waiter
as_planned $S

section "a policy out of a pipe"
mkfifo /tmp/policy
expect 1 nicpin apply --config /tmp/policy
one_line "$ERR"; contains "what it is" "is a FIFO, not a regular file" "$ERR"

section "renamed after its interrupts were named, and after apply"
ip link set dev nic1 name lan1
contains "the interrupts still have the old name" nic1-TxRx-0 /proc/interrupts
in_planned_state
expect 0 nicpin restore
snapshot /tmp/now; sed 's:/lan1/:/nic1/:' /tmp/now | sort > /tmp/now.names; sort /tmp/before > /tmp/before.sorted
same_file "the machine after restore" /tmp/before.sorted /tmp/now.names
expect 0 nicpin plan lan1 --format json
vectors "$OUT" | sed 's/lan1/nic1/' > /tmp/lan1; vectors $P | grep nic1 > /tmp/nic1
same_file "vectors under the new name" /tmp/nic1 /tmp/lan1
expect 0 nicpin apply lan1
equal "a vector under the new name" "$(writes $S | sed -n "s:^/proc/irq/$irq/smp_affinity ::p")" "$(cat "/proc/irq/$irq/smp_affinity")"
ip link set dev lan1 name nic1
restored

section "two cards swap their names"
ip link set dev nic1 name swap; ip link set dev nic7 name nic1; ip link set dev swap name nic7
expect 0 nicpin plan nic1 nic7 --format json
vectors "$OUT" | awk '{print $1, $2}' > /tmp/swapped
for nic in nic1 nic7; do for i in $(irqs $nic | sed 1d); do echo "$i $nic"; done; done | sort > /tmp/owners
sort /tmp/swapped > /tmp/swapped.sorted
same_file "whose vectors they are" /tmp/owners /tmp/swapped.sorted
ip link set dev nic1 name swap; ip link set dev nic7 name nic1; ip link set dev swap name nic7

section "an interface is down"
ip link set dev nic2 down
fresh_plan
equal "vectors of nic2 in the plan" "" "$(vectors $P | grep nic2)"
expect 0 nicpin apply
as_planned $S
in_planned_state
ip link set dev nic2 up; poll 10 links_up
fresh_plan
at_least "vectors of nic2 in the plan" 8 "$(vectors $P | grep -c nic2)"
expect 2 nicpin check --exact nic2
expect 0 nicpin apply
as_planned $S
in_planned_state

section "an interface is down while its settings are restored"
ip link set dev nic2 down
expect 0 nicpin restore
ip link set dev nic2 up; poll 10 links_up
restored

section "a CPU goes offline, and comes back"
fresh_plan
at_least "vectors planned for CPU 3" 1 "$(vectors $P | grep -c ' 3$')"
expect 0 nicpin apply
echo 0 > /sys/devices/system/cpu/cpu3/online
expect 2 nicpin check --exact
expect 0 nicpin apply
in_planned_state
expect 0 nicpin plan --format json
equal "vectors planned for CPU 3" 0 "$(vectors "$OUT" | grep -c ' 3$')"
echo 1 > /sys/devices/system/cpu/cpu3/online
expect 2 nicpin check --exact
expect 0 nicpin apply
as_planned $S
restored
expect 0 nicpin apply

section "cards vanish"
others() { # SNAPSHOT: without those two cards
  grep -v -E "/net/(nic3|nic7|eth[0-9]*)/|/proc/irq/($gone)/" "$1"
}
gone=$(echo "$(irqs nic3) $(irqs nic7)" | xargs | tr ' ' '|')
echo 1 > "$(pci nic3)/remove"
expect 0 nicpin apply
in_planned_state
expect 0 nicpin restore; poll 10 links_up
fresh_plan
# nic7 vanishes at any point of the apply; the others get their values all the same.
nicpin apply > /tmp/said 2>&1 & running=$!
echo 1 > "$(pci nic7)/remove"
wait $running; status=$?
holds "status $status of an apply from under which a card is taken: $(tail -1 /tmp/said)" [ $status -le 1 ]
expect 0 nicpin apply
in_planned_state
expect 0 nicpin restore
at_least "values that wait for the cards" 1 "$(number absent)"
snapshot /tmp/now
others /tmp/before > /tmp/before.others; others /tmp/now > /tmp/now.others
same_file "the other cards after restore" /tmp/before.others /tmp/now.others

section "cards come back"
echo 1 > /sys/bus/pci/rescan
back() { [ "$(cat /sys/class/net/*/address | grep -c '^52:54:00:12:34:')" = 8 ]; }
holds "the cards come back" poll 10 back
for card in /sys/class/net/eth*; do ip link set dev "${card##*/}" up; done
holds "their links come up" poll 10 links_up
expect 0 nicpin restore
contains "no value waits for a card" "absent=0" "$OUT"
expect 0 nicpin restore --json
contains "a last restore" '"results": []' "$OUT"
finish
