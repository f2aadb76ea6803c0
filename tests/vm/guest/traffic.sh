#!/bin/sh
# shellcheck shell=dash disable=SC1091
# two-node, four-node: after apply, every queue takes traffic, and its interrupts arrive on the planned CPU and on no
# other. Packets sent on a CPU leave by the queue that XPS gives it; RPS hands them to its own CPUs. While only one
# flow is sent, the queue that counts its packets is the one that the plan gives for the IRQ that fires: no name of a
# vector has a say in that. Needs ethtool.
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

# steered PAIR: packets from each CPU of a transmit queue leave by that queue; its vector tells if it has one of its
# own, as virtio has.
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

# handed_over: packets that RPS has handed to each CPU
handed_over() { awk '{print NR - 1, $10}' /proc/net/softnet_stat; }

# ---------------------------------------------------------------- one flow at a time
FLOW=200 # packets
NOWHERE=10.9.0.200 # an address that nobody has, so that nobody answers

modprobe pktgen
mount -t tracefs tracefs /sys/kernel/tracing
HIST=/sys/kernel/tracing/events/net/napi_gro_receive_entry
echo 'hist:keys=name,queue_mapping' > $HIST/trigger

# sysfs does not show a card of another namespace.
for nic in $NICS; do
  echo "$nic $(basename "$(readlink "/sys/class/net/$nic/device/driver")") $(cat "/sys/class/net/$nic/address")"
done > /tmp/cards
card() { awk -v nic="$1" '$1 == nic {print $2, $3}' /tmp/cards; } # NIC: its driver and address
# on NIC COMMAND...: runs in the namespace of NIC
on() { local nic=$1; shift; if [ "$nic" = "$FAR" ]; then in_ns "$@"; else "$@"; fi; }

# packets rx|tx: "queue QUEUE PACKETS" of $NIC by its driver's own counters
packets() {
  if [ "$DRIVER:$1" = virtio_net:rx ]; then
    # Linux 6.12 shows no such counter, but traces the queue of each packet, counted from 1.
    awk -v nic="$NIC" '$2 == "name:" && $3 == nic {print "queue", $6 - 1, $9}' $HIST/hist
    return
  fi
  on "$NIC" ethtool -S "$NIC" | awk -F: -v driver="$DRIVER" -v way="$1" '
    {key = $1; gsub(/^ +| +$/, "", key)}
    driver == "vmxnet3" && key ~ /Queue#/ {queue = tolower(key) ~ "^" way ? $2 + 0 : ""}
    driver == "vmxnet3" && queue != "" && key == "ucast pkts " way {print "queue", queue, $2 + 0}
    # The driver kicks the device for each packet if packets come slowly.
    driver == "virtio_net" && key ~ "^" way "[0-9]+_kicks$" {print "queue", substr(key, 3) + 0, $2 + 0}
    driver == "igb" && key ~ "^" way "_queue_[0-9]+_packets$" {print "queue", substr(key, 10) + 0, $2 + 0}
    driver ~ /^e1000/ && key == way "_packets" {print "queue", 0, $2 + 0}'
}

# counts rx|tx: packets, and "irq IRQ INTERRUPTS" of vectors that are planned for that direction
counts() {
  packets "$1"
  awk -v nic="$NIC" -v way="$1" '
    NR == FNR {if ($2 == nic && ($3 == way || $3 == "combined")) ours[$1 ":"] = $1; next}
    FNR == 1 {cpus = NF; next}
    $1 in ours {n = 0; for (i = 2; i <= cpus + 1; i++) n += $i; print "irq", ours[$1], n}' /tmp/pair /proc/interrupts
}

# arrived rx|tx: whether no packet is on its way; leaves the counts in /tmp/is
arrived() {
  counts "$1" > /tmp/before
  usleep 20000
  counts "$1" > /tmp/is
  cmp -s /tmp/before /tmp/is
}

# grown: "QUEUE PACKETS IRQ INTERRUPTS PLANNED" between /tmp/was and /tmp/is; PLANNED is the queue of the IRQ by the
# plan; several queues or IRQs if several have counted. A link's own packets and a driver's watchdog are less than a
# quarter of a flow.
grown() {
  awk '
    FILENAME == "/tmp/pair" {queue_of[$1] = $4; next}
    FILENAME == "/tmp/was" {was[$1, $2] = $3; next}
    (by = $3 - was[$1, $2]) > 0 {grew[$1, $2] = by; if (by > most[$1]) most[$1] = by}
    END {
      for (key in grew) {
        split(key, part, SUBSEP)
        if (grew[key] * 4 >= most[part[1]]) {
          several = id[part[1]] != ""
          id[part[1]] = id[part[1]] (several ? "+" : "") part[2]
          if (part[1] == "irq") planned = planned (several ? "+" : "") queue_of[part[2]]
        }
      }
      if (id["queue"] != "" && id["irq"] != "") print id["queue"], most["queue"], id["irq"], most["irq"], planned
      else print "none 0 none 0 none either"
    }' /tmp/pair /tmp/was /tmp/is
}

# flow rx|tx COMMAND...: the queue and the IRQ that count while COMMAND sends belong together by the plan. Sets QUEUE.
flow() {
  local way=$1 packets irq interrupts planned; shift
  counts "$way" > /tmp/was
  # Tries again if packets come late on a busy host, or many of them with one interrupt.
  for _ in 1 2 3 4 5; do
    "$@"
    poll 5 arrived "$way"
    grown > /tmp/grown
    read -r QUEUE packets irq interrupts planned < /tmp/grown
    [ "$packets" -lt 20 ] || [ "$interrupts" -lt 20 ] || break
  done
  echo "  $NIC $way $QUEUE: $packets packets; IRQ $irq: $interrupts interrupts"
  equal "the queue by plan of IRQ $irq, which fired while $NIC counted packets of one flow" "$way $QUEUE" "$way $planned"
  at_least "packets of one flow that $NIC counted" 20 "$packets"
  at_least "interrupts of $NIC for one flow" 20 "$interrupts"
}

# sent_to N: flow N to $NIC, from the card at the other end of the wire. A card's hash is linear, with a key of this
# boot: addresses that differ in few bits may all come to one queue.
sent_to() {
  local thread=/proc/net/pktgen/kpktgend_0 line from
  from=10.$(($1 * 29 % 251 + 1)).$(($1 * 53 % 251 + 1)).$(($1 * 97 % 251 + 1))
  {
    echo "echo rem_device_all > $thread; echo add_device $PEER > $thread"
    for line in "count $FLOW" "delay 400000" "dst_mac $MAC" "dst $NOWHERE" "src_min $from" "src_max $from" \
      "udp_src_min $((4000 + $1))" "udp_src_max $((4000 + $1))"; do
      echo "echo $line > /proc/net/pktgen/$PEER"
    done
    echo "echo start > /proc/net/pktgen/pgctrl; echo rem_device_all > $thread"
  } > /tmp/pktgen
  on "$PEER" sh /tmp/pktgen
}

# sent_on CPU: a flow from $NIC that one CPU sends
sent_on() { on "$NIC" sh -c "taskset -c $1 ping -q -i 0.001 $NOWHERE >/dev/null & usleep 200000; kill \$!"; }

SENT=0 # flows so far
# flows NIC PEER: one flow for each receive queue, and more until several queues have had one; then every transmit queue
flows() {
  local n=0 seen=0 queues queue cpus peer_mac
  NIC=$1 PEER=$2
  card "$PEER" > /tmp/card; read -r DRIVER peer_mac < /tmp/card
  card "$NIC" > /tmp/card; read -r DRIVER MAC < /tmp/card
  queues=$(awk -v nic="$NIC" '$2 == nic && $3 != "tx"' /tmp/pair | wc -l)
  # QEMU's vmxnet3 has no hash: it fills receive queue 0 only (RXQ_IDX in hw/net/vmxnet3.c). Its transmit queues prove
  # the other vectors, each of which serves the receive and the transmit queue of one number.
  [ "$DRIVER" != vmxnet3 ] || queues=1
  : > /tmp/seen
  while [ "$seen" -lt "$queues" ] && [ $n -lt 16 ]; do
    [ $n -lt "$queues" ] || [ "$seen" -lt 2 ] || break
    # No card gets a flow that its peer got: for 3 s QEMU's taps send a flow to the queue that it came from.
    SENT=$((SENT + 1))
    flow rx sent_to $SENT
    echo "$QUEUE" >> /tmp/seen
    seen=$(sort -u /tmp/seen | wc -l) n=$((n + 1))
  done
  at_least "receive queues of $NIC that flows reached" $((queues > 1 ? 2 : 1)) "$seen"
  on "$NIC" arp -i "$NIC" -s $NOWHERE "$peer_mac"
  steering $P xps | awk -v nic="$NIC" '$1 == nic {print $2, $3; n++} END {if (!n) print 0, 0}' > /tmp/tx
  while read -r queue cpus; do
    flow tx sent_on "${cpus%%[-,]*}"
    equal "the queue by which CPU ${cpus%%[-,]*} sends on $NIC" "$queue" "$QUEUE"
  done < /tmp/tx
}

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
  echo "$NEAR and $FAR: one flow at a time"
  flows "$NEAR" "$FAR"; flows "$FAR" "$NEAR"
  disconnect
done
finish
