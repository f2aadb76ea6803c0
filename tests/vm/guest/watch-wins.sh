#!/bin/bash
# shellcheck disable=SC1091,SC2086
# nicpin-watch.service and other programs: four restarts of irqbalance within twenty seconds, each after somebody has moved a
# card's IRQs, and then channels, down and up: after each the plan is back within 5 s. Then a program that writes every
# second, which is answered less and less often, until an event. Needs ethtool and irqbalance.
. /harness/lib.sh
. /payload/assert.sh
. /payload/watch-lib.sh
LIMIT=$((LIMIT * 5 / 2))

# back WHAT COMMAND...: the plan is back in time after the command, without waiting for anything else
back() {
  local what=$1 began; shift
  "$@" > /tmp/back 2>&1 || { failed "$what: $* gives status $?"; cat /tmp/back; }
  began=$(milliseconds)
  poll 30 as_before
  CHECKS=$((CHECKS + 1)) TOOK=$(($(milliseconds) - began))
  printf '%-44s plan back after %5d ms\n' "$what" "$TOOK"
  [ "$TOOK" -le "$LIMIT" ] || { failed "$what: the plan is back after $TOOK ms, more than $LIMIT"; nicpin check --exact; }
}
moved_and_restarted() {
  systemctl reset-failed irqbalance.service
  spoil nic1; systemctl restart irqbalance.service
}
moved_while_down() { ip link set dev nic1 down; spoil nic1; ip link set dev nic1 up; }
left_alone() { sed -n '/^  "left_alone": \[/,/\]/s/^      "path": "\(.*\)",$/\1/p' $STATE; }

systemctl stop irqbalance.service
for option in "" --guard; do
  section "four restarts of irqbalance, then events: nicpin watch $option"
  guarded $option
  began=$(milliseconds)
  for n in 1 2 3 4; do back "IRQs moved, irqbalance restarts, $n" moved_and_restarted; done
  echo "in $((($(milliseconds) - began) / 1000)) s"
  equal "what is left unchanged" "" "$(left_alone)"
  back "ethtool -L" ethtool -L nic1 combined 2
  back "ethtool -L back" ethtool -L nic1 combined 4
  back "moved while down, then up" moved_while_down
  equal "what is left unchanged" "" "$(left_alone)"
  poll 20 quiet
  expect 0 nicpin check --exact
done
systemctl stop irqbalance.service

section "a program that writes one vector every second"
fresh
irq=$(irqs nic1 | sed -n 2p)
file=/proc/irq/$irq/smp_affinity_list planned=$(cat "/proc/irq/$irq/smp_affinity_list")
# writes SECONDS: prints the times at which the vector was found restored
writes() {
  local n
  RESTORES=0
  for n in $(seq "$1"); do
    [ "$(cat "$file")" != "$planned" ] || { RESTORES=$((RESTORES + 1)); echo "restored before second $n"; }
    echo 0 > "$file"; sleep 1
  done
}
writes 75
at_least "restores within 75 s" 4 $RESTORES
at_least "restores left of six within 75 s" 0 $((6 - RESTORES))
equal "what is left unchanged" "/proc/irq/$irq/smp_affinity" "$(left_alone)"
equal "warnings" 1 "$(journal | grep -c 'from now on it is restored after 1 min')"
expect 0 nicpin status
contains "status" "not restored until" "$OUT"
# Only events about its interface count, not those about another one.
ip link set dev nic3 down; ip link set dev nic3 up
poll 20 quiet
equal "the vector after an event about another interface" 0 "$(cat "$file")"
flap() { ip link set dev nic1 down; ip link set dev nic1 up; }
cpu3_off_and_on() { cpu3 0; sleep 0.5; cpu3 1; }
renamed() {
  ip link set dev nic1 down; ip link set dev nic1 name other0; sleep 1
  ip link set dev other0 name nic1; ip link set dev nic1 up
}
enslaved() {
  ip link add bond9 type bond; ip link set dev nic1 down; ip link set dev nic1 master bond9
  ip link set dev nic1 nomaster; ip link del bond9; ip link set dev nic1 up
}
for event in flap cpu3_off_and_on renamed enslaved "rebind nic1"; do
  # The queue may have another IRQ by now.
  irq=$(irqs nic1 | sed -n 2p) file=/proc/irq/$(irqs nic1 | sed -n 2p)/smp_affinity_list
  poll 20 as_before
  planned=$(cat "$file")
  writes 8 > /dev/null
  equal "what is left unchanged before: $event" "/proc/irq/$irq/smp_affinity" "$(left_alone)"
  back "$event" $event
done
equal "warnings" 1 "$(journal | grep -c 'from now on it is restored after 1 min')"
unguarded
finish
