#!/bin/sh
# shellcheck shell=dash disable=SC1091
# two-node, four-node: after apply, every queue takes traffic, and its interrupts arrive on the planned CPU and on no
# other. Packets sent on a CPU leave by the queue that XPS gives it; RPS hands them to its own CPUs.
. /harness/lib.sh
. /payload/assert.sh

P=/tmp/plan.json
expect 0 nicpin plan --format json; cp "$OUT" $P
expect 0 nicpin apply

# deltas BASE NOW: "IRQ INTERFACE ROLE QUEUE CPU cpu:+n... VERDICT" of the vectors in /tmp/pair, from two copies of
# /proc/interrupts
deltas() {
  awk '
    FILENAME == "/tmp/pair" {irq[++n] = $1; what[$1] = $0; cpu[$1] = $5; next}
    FNR == 1 {cpus = NF; for (i = 1; i <= NF; i++) id[i + 1] = substr($i, 4); next}
    {line = $1 + 0; if (line in cpu) for (i = 2; i <= cpus + 1; i++) grown[line, id[i]] = $i - grown[line, id[i]]}
    END {
      for (k = 1; k <= n; k++) {
        verdict = "idle"; text = ""; l = irq[k]
        for (i = 2; i <= cpus + 1; i++) if (d = grown[l, id[i]]) {
          text = text " " id[i] ":+" d
          if (id[i] != cpu[l]) verdict = "WRONG"; else if (verdict == "idle") verdict = "proven"
        }
        print what[l] text, verdict
      }
    }' /tmp/pair "$1" "$2"
}

# steered PAIR: packets pinned to each CPU of each transmit queue leave by that queue. Its vector tells, where it is
# its own, as virtio's.
steered() {
  local nic queue cpus cpu irq before
  steering $P xps | grep "^$NEAR " > /tmp/xps
  while read -r nic queue cpus; do
    irq=$(awk -v nic="$nic" -v queue="$queue" '$2 == nic && $3 == "tx" && $4 == queue {print $1}' /tmp/pair)
    [ -n "$irq" ] || continue
    for cpu in $(expand "$cpus"); do
      before=$(total "$irq")
      taskset -c "$cpu" ping -q -c 2 -i 0.02 -W 1 10.9.0.2 >/dev/null
      at_least "interrupts of $nic tx $queue after sending on CPU $cpu" 1 $(($(total "$irq") - before))
    done
  done < /tmp/xps
}
total() { awk -v irq="$1:" 'NR == 1 {n = NF} $1 == irq {for (i = 2; i <= n + 1; i++) t += $i; print t}' /proc/interrupts; }
expand() { echo "$1" | tr ',' '\n' | while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done; }

# handed_over: packets that RPS has handed to each CPU so far
handed_over() { awk '{print NR - 1, $10}' /proc/net/softnet_stat; }

for pair in $(pairs); do
  connect "$pair" $P
  vectors $P | awk -v near="$NEAR" -v far="$FAR" '$2 == near || $2 == far' > /tmp/pair
  settle $P
  cat /proc/interrupts > /tmp/base
  handed_over > /tmp/rps.base
  rounds=0
  while talk 5; cat /proc/interrupts > /tmp/now; deltas /tmp/base /tmp/now > /tmp/deltas; grep -q idle /tmp/deltas; do
    rounds=$((rounds + 1)); [ $rounds -lt 5 ] || break
  done
  handed_over > /tmp/rps.now
  echo "$NEAR ($(basename "$(readlink "/sys/class/net/$NEAR/device/driver")")) and $FAR: IRQ, queue, planned CPU, interrupts by CPU"
  sed 's/^/  /' /tmp/deltas
  equal "vectors of $pair that fired on another CPU" "" "$(grep WRONG /tmp/deltas)"
  equal "vectors of $pair that never fired" "" "$(grep idle /tmp/deltas)"
  steered
  rps=$(steering $P rps | awk -v near="$NEAR" -v far="$FAR" '$1 == near || $1 == far')
  if [ -n "$rps" ]; then
    echo "$rps" | while read -r nic queue cpus; do expand "$cpus"; done | sort -un > /tmp/rps.cpus
    awk 'NR == FNR {was[$1] = $2; next} was[$1] != $2 {print $1}' /tmp/rps.base /tmp/rps.now | sort -n > /tmp/rps.took
    echo "$rps" | sed 's/^/  rps: /'; echo "  rps: taken by CPUs $(tr '\n' ' ' < /tmp/rps.took)"
    equal "CPUs of $pair that took packets from RPS unplanned" "" "$(grep -vxF -f /tmp/rps.cpus /tmp/rps.took)"
    at_least "CPUs of $pair that took packets from RPS" 2 "$(wc -l < /tmp/rps.took)"
  fi
  disconnect
done
finish
