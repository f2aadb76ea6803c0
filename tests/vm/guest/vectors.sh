#!/bin/sh
# shellcheck shell=dash disable=SC1091
# vectors with irqaffinity=0 or 0-1: IRQs stay on the administrator's CPUs, as far as these have interrupt vectors.
. /harness/lib.sh
. /payload/assert.sh

allowed=$((0x$(cat /proc/irq/default_smp_affinity)))
own() { for device in /sys/class/net/nic*; do ls "$(readlink -f "$device/device/..")/msi_irqs"; done; }
at_least "IRQs of the cards" 264 "$(own | wc -l)"
outside() { # the IRQs of queues that are effective on another CPU than the administrator's
  for irq in $(own); do
    [ -e "/proc/irq/$irq/effective_affinity" ] || continue
    [ $((0x$(cat "/proc/irq/$irq/effective_affinity") & ~allowed)) = 0 ] || echo "$irq $(cat "/sys/kernel/irq/$irq/actions")"
  done
}
# IRQs begin on the other CPUs.
for irq in $(own); do
  # Control IRQs are unchanged.
  grep -qs config "/sys/kernel/irq/$irq/actions" || [ ! -e "/proc/irq/$irq/smp_affinity" ] || printf '%x\n' $((0xf & ~allowed)) > "/proc/irq/$irq/smp_affinity"
done
expect 0 nicpin plan --format json; cp "$OUT" /tmp/plan.json
contains "who keeps IRQs off other CPUs" /proc/irq/default_smp_affinity "$OUT"
vectors /tmp/plan.json > /tmp/vectors
at_least "placed IRQs" 150 "$(wc -l < /tmp/vectors)"
equal "IRQs planned on other CPUs" "" "$(cut -d' ' -f5 /tmp/vectors | while read -r cpu; do [ $((1 << cpu & allowed)) != 0 ] || echo "$cpu"; done)"
most=$(cut -d' ' -f5 /tmp/vectors | sort | uniq -c | sort -rn | awk 'NR == 1 { print $1 }')
holds "no CPU gets more than its vectors ($most)" [ "$most" -le 200 ]
expect 0 nicpin plan --format sh; cp "$OUT" /tmp/plan.sh
before=$(outside | wc -l)
expect 0 nicpin apply
equal "refused writes" 0 "$(number refused)"
as_planned /tmp/plan.sh
echo "   $before IRQs on other CPUs before, $(outside | wc -l) after"
expect 0 nicpin check --exact
expect 0 nicpin apply
equal "values changed by a second apply" 0 "$(number changed)"
expect 0 nicpin plan
if [ $allowed = 1 ]; then
  contains "what does not fit" "interrupt vectors left" "$(in_one_line)"
  # A script that writes each mask is refused some.
  refused=0
  for irq in $(own); do
    [ ! -e "/proc/irq/$irq/smp_affinity" ] || echo 1 2>/dev/null > "/proc/irq/$irq/smp_affinity" || refused=$((refused + 1))
  done
  at_least "masks that the kernel refuses beyond the vectors of a CPU" 20 $refused
  echo "   $refused of $(own | wc -l) masks refused where each is written"
else
  equal "IRQs on other CPUs" "" "$(outside)"
fi
expect 0 nicpin restore
finish
