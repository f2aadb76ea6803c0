#!/bin/sh
# shellcheck shell=dash disable=SC1091
# Any topology: plan, check, apply, what the kernel holds and does then, restore.
. /harness/lib.sh
. /payload/assert.sh

P=/tmp/plan.json S=/tmp/plan.sh
snapshot /tmp/before

# --- the plan
expect 0 nicpin plan --format json; cp "$OUT" $P
expect 0 nicpin plan --format sh; cp "$OUT" $S
N=$(writes $S | wc -l)
at_least "writes of the plan" 1 "$N"
equal "writes in JSON and in sh" "$(grep -c '"path":' $P)" "$N"
for nic in $NICS; do contains "interface in the plan" "\"name\": \"$nic\"" $P; done
case $TOPOLOGY in
  flat)
    equal "how each node is known" "single-node" "$(sed -n 's/.*"node_source": "\(.*\)".*/\1/p' $P | sort -u)";;
  four-node)
    for nic in nic0=numa_node nic1=numa_node nic4=nearest nic5=unknown nic6=unknown; do
      equal "how the node of ${nic%=*} is known" "${nic#*=}" \
        "$(awk -F'"' -v nic="${nic%=*}" '$2 == "name" {n = $4} $2 == "node_source" && n == nic {print $4}' $P)"
    done;;
  irregular)
    equal "possible CPUs" 0-239 "$(cat /sys/devices/system/cpu/possible)"
    equal "candidates of each interface" "nic0 0,2,4 nic1 1,3,5 nic2 0-5 nic3 6-7" \
      "$(awk -F'"' '$2 == "name" {n = $4} $2 == "candidates" {print n, $4}' $P | sort | xargs)";;
  wide)
    equal "groups in each mask" 3 "$(writes $S | awk '$1 ~ /affinity|cpus/ {print split($2, a, ",")}' | sort -u)";;
esac

# --- reading needs no root, and reads the same
expect 0 as_nobody nicpin plan --format json
same_file "the plan that an unprivileged user sees" $P "$OUT"
expect 0 as_nobody nicpin plan --all
for nic in $NICS; do contains "interface in the table" "$nic" "$OUT"; done
vectors $P | while read -r irq rest; do echo "$irq"; done > /tmp/irqs
while read -r irq; do holds "IRQ $irq in the table" grep -q " IRQ $irq " "$OUT"; done < /tmp/irqs
expect 2 as_nobody nicpin check
expect 2 nicpin check -j
for path in $(writes $S | cut -d' ' -f1); do contains "difference that check names" "$path" "$OUT"; done

# --- writing needs root
expect 1 as_nobody nicpin apply
one_line "$ERR"
equal "standard output of a refused apply" "" "$(cat "$OUT")"
snapshot /tmp/now; same_file "the machine after plan, check and a refused apply" /tmp/before /tmp/now

# --- apply
start=$(milliseconds)
expect 0 nicpin apply
took=$(($(milliseconds) - start))
equal "values changed" "$N" "$(number changed)"
equal "values refused" 0 "$(number refused)"
equal "values vanished" 0 "$(number vanished)"
holds "apply within 10 s ($took ms)" [ $took -lt 10000 ]
as_planned $S
snapshot /tmp/after
# What the plan does not name stays: kernel-managed and control vectors, and other interrupts of the machine.
writes $S | cut -d' ' -f1 | sort > /tmp/planned
diff /tmp/before /tmp/after | sed -n 's/^+\([^+:][^:]*\):.*/\1/p' | sort > /tmp/changed
same_file "files that changed" /tmp/planned /tmp/changed
if [ "$TOPOLOGY" = two-node-ir ]; then
  equal "vectors with other effective CPUs, with interrupt remapping" "" "$(unsettled $P)"
fi

# --- again: nothing to do
expect 0 nicpin apply
equal "values changed by a second apply" 0 "$(number changed)"
expect 0 nicpin check --exact
expect 0 as_nobody nicpin check
expect 0 nicpin plan --format sh
equal "writes of a plan after apply" "" "$(writes "$OUT")"
expect 0 nicpin plan --format json
equal "hash of a plan after apply" "$(grep '"hash"' $P)" "$(grep '"hash"' "$OUT")"
snapshot /tmp/now; same_file "the machine after a second apply" /tmp/after /tmp/now

# --- what the kernel does with it
for pair in $(pairs); do connect "$pair" $P; settle $P; disconnect; done
equal "vectors with other effective CPUs after traffic on all wires" "" "$(unsettled $P)"
expect 0 nicpin check --exact
snapshot /tmp/now; same_file "the machine after traffic" /tmp/after /tmp/now

# --- restore
expect 0 nicpin restore
equal "settings restored" "$N" "$(number changed)"
snapshot /tmp/now; same_file "the machine after restore" /tmp/before /tmp/now
expect 0 nicpin restore --json
contains "a second restore" '"results": []' "$OUT"
snapshot /tmp/now; same_file "the machine after a second restore" /tmp/before /tmp/now
expect 2 nicpin check --exact

# --- on other nodes: what apply sets is what check finds, whichever nodes have neither CPUs nor memory
if [ "$TOPOLOGY" = irregular ] || [ "$TOPOLOGY" = four-node ]; then
  nicpin apply --scope remote > /tmp/remote 2>&1; code=$?
  nicpin check --scope remote --exact > /tmp/remote.check 2>&1
  equal "exit code of check after apply, both with --scope remote" "$code" $?
  expect 0 nicpin restore
  snapshot /tmp/now; same_file "the machine after another restore" /tmp/before /tmp/now
fi
finish
