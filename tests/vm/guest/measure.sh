#!/bin/sh
# shellcheck shell=dash disable=SC1091
# two-node, with iperf3: status, measure and compare while there is traffic, against differences of the kernel's own
# counters that are taken here.
. /harness/lib.sh
. /payload/assert.sh

P=/tmp/plan.json
expect 0 nicpin plan --format json; cp "$OUT" $P
expect 2 nicpin check --exact
expect 0 nicpin
contains "the state before apply" "(24 writes)" "$OUT"
expect 0 nicpin apply
connect nic0:nic1 $P
settle $P
in_ns iperf3 -s -D >/dev/null 2>&1
listening() { in_ns cat /proc/net/tcp | grep -q ':1451 '; }  # port 5201
holds "the iperf3 server listens" poll 10 listening

# by_cpu JSON: "IRQ CPU COUNT" of each vector and CPU that took interrupts, from the last line
by_cpu() {
  tail -1 "$1" | tr ',{}[]' '\n' | awk -F: '
    $1 == "\"irq\"" {irq = $2; cpu = ""}
    $1 == "\"cpu\"" {cpu = $2}
    $1 == "\"interrupts\"" && cpu != "" {print irq, cpu, $2; cpu = ""}' | sort
}
# taken BASE NOW CARD: the lines of by_cpu from two copies of /proc/interrupts
taken() {
  irqs "$3" > /tmp/irqs
  awk '
    FILENAME == "/tmp/irqs" {own[$1]; next}
    FNR == 1 {n = NF; for (i = 1; i <= NF; i++) id[i + 1] = substr($i, 4); next}
    ($1 + 0) in own {for (i = 2; i <= n + 1; i++) {k = $1 + 0 " " id[i]; if (k in was) {if ($i > was[k]) print k, $i - was[k]} else was[k] = $i}}
  ' /tmp/irqs "$1" "$2" | sort
}
# alike A B: the same vectors and CPUs, and nearly as many interrupts: B was taken around A, with a few more
alike() {
  awk '
    NR == FNR {a[$1 " " $2] = $3; next}
    {k = $1 " " $2; b[k] = $3}
    END {
      for (k in a) if (!(k in b) || a[k] > b[k]) {print "more than were taken: IRQ, CPU", k, a[k] + 0, b[k] + 0; bad = 1}
      for (k in b) if (b[k] - a[k] > 20 + b[k] / 20) {print "not seen: IRQ, CPU", k, a[k] + 0, b[k]; bad = 1}
      exit bad
    }' "$1" "$2"
}
# number_of KEY FILE: the first value of KEY in the last line
number_of() { tail -1 "$2" | tr ',{}[]' '\n' | sed -n "s/^ *\"$1\": *//p" | sed 1q; }
counter() { cat "/sys/class/net/$1/statistics/$2"; }

echo "--- measure while iperf3 runs"
cat /proc/interrupts > /tmp/base; tx=$(counter nic0 tx_bytes) rx=$(counter nic0 rx_bytes)
expect 0 nicpin measure --format json nic0 -- iperf3 -c 10.9.0.2 -t 3 -P 4
cat /proc/interrupts > /tmp/now; tx=$(($(counter nic0 tx_bytes) - tx)) rx=$(($(counter nic0 rx_bytes) - rx))
cp "$OUT" /tmp/measure.json
by_cpu /tmp/measure.json > /tmp/reported; taken /tmp/base /tmp/now nic0 > /tmp/took
at_least "vectors with interrupts" 2 "$(wc -l < /tmp/took)"
equal "interrupts by vector and CPU" "" "$(alike /tmp/reported /tmp/took)"
at_least "megabytes sent" 1 $((tx / 1000000))
# Nothing else uses the wire.
holds "bytes sent: $(number_of tx_bytes /tmp/measure.json) of $tx" [ $((tx - $(number_of tx_bytes /tmp/measure.json))) -le $((tx / 100)) ]
holds "bytes received: $(number_of rx_bytes /tmp/measure.json) of $rx" [ $((rx - $(number_of rx_bytes /tmp/measure.json))) -le $((rx / 100 + 2000)) ]
contains "all interrupts on the card's node" '"local":1.0' /tmp/measure.json
contains "no interrupt elsewhere" '"remote_interrupts":0' /tmp/measure.json
echo "  IRQ, CPU, interrupts by nicpin; by /proc/interrupts"
join_lines() { awk 'NR == FNR {a[$1 " " $2] = $3; next} {print "  " $1, $2, a[$1 " " $2] + 0, $3}' "$1" "$2"; }
join_lines /tmp/reported /tmp/took

echo "--- the table, and the status, while traffic flows"
# A flow from the CPU of one queue stays on that queue.
vectors $P | awk '$2 == "nic0" && $3 == "tx" && $4 == 0 {print $1, $5}' > /tmp/first
read -r irq away < /tmp/first
taskset -c "$away" iperf3 -c 10.9.0.2 -t 100 >/dev/null 2>&1 & flow=$!
usleep 500000
expect 0 nicpin measure --seconds 2 nic0; cat "$OUT"
expect 0 nicpin status --seconds 2 nic0; cat "$OUT"
contains "proof" "nic0 is as planned; interrupts arrive where planned" "$OUT"
expect 0 nicpin status --seconds 2 --format json nic0
contains "proof in JSON" '"state": "ok"' "$OUT"
expect 0 nicpin status --seconds 0 nic0
contains "no proof without a look" "nic0 is as planned; interrupts were not watched" "$OUT"

echo "--- a vector that something else moves"
echo 7 > "/proc/irq/$irq/smp_affinity_list"
effective_is_7() { [ "$(cat "/proc/irq/$irq/effective_affinity_list")" = 7 ]; }
holds "IRQ $irq moves to CPU 7" poll 10 effective_is_7
expect 0 nicpin status --json --seconds 2 nic0
contains "the state" '"state": "remote"' "$OUT"
contains "its fix" '"fix": "nicpin apply nic0"' "$OUT"
contains "since when" '"drifted": 1,' "$OUT"
cat /proc/interrupts > /tmp/base
expect 0 nicpin measure --seconds 2 --format json nic0; cp "$OUT" /tmp/measure.json
cat /proc/interrupts > /tmp/now
taken /tmp/base /tmp/now nic0 > /tmp/took; by_cpu /tmp/measure.json > /tmp/reported
# Traffic goes on while nicpin starts and ends: nicpin counts as many or fewer, on the same CPUs.
equal "interrupts beyond those taken" "" "$(awk 'NR == FNR {b[$1 " " $2] = $3; next} $3 > b[$1 " " $2]' /tmp/took /tmp/reported)"
at_least "remote interrupts" 1 "$(number_of remote_interrupts /tmp/measure.json)"
at_least "interrupts on CPU 7" 1 "$(awk -v irq="$irq" '$1 == irq && $2 == 7 {print $3}' /tmp/reported)"
expect 0 nicpin apply nic0
back() { [ "$(cat "/proc/irq/$irq/effective_affinity_list")" = "$away" ]; }
holds "it moves back" poll 10 back

echo "--- polling that is not where the interrupt is"
echo 1 > /sys/class/net/nic0/threaded
expect 0 nicpin status --seconds 0 nic0
tr -s ' \n' ' ' < "$OUT" > /tmp/words
contains "threads" "processed by kernel threads (pids " /tmp/words
pid=$(sed -n 's/.*kernel threads (pids \([0-9]*\).*/\1/p' /tmp/words)
contains "the process that is named" "napi/nic0" "/proc/$pid/comm"
echo 0 > /sys/class/net/nic0/threaded
echo 200000 > /sys/class/net/nic0/gro_flush_timeout; echo 2 > /sys/class/net/nic0/napi_defer_hard_irqs
expect 0 nicpin status --seconds 0 nic0
contains "put-off interrupts" "napi_defer_hard_irqs 2" "$OUT"
echo 0 > /sys/class/net/nic0/gro_flush_timeout; echo 0 > /sys/class/net/nic0/napi_defer_hard_irqs

echo "--- CPUs that go and come while they are measured"
(usleep 700000; echo 0 > /sys/devices/system/cpu/cpu5/online; usleep 1500000; echo 1 > /sys/devices/system/cpu/cpu5/online) & cpus=$!
expect 0 nicpin measure --seconds 4 nic0
contains "the CPU that went" "meanwhile, and are left out: 5" "$OUT"
kill $flow; wait $flow $cpus 2>/dev/null

echo "--- compare"
expect 0 nicpin apply
cat /proc/interrupts > /tmp/base; tx=$(counter nic0 tx_bytes) rx=$(counter nic0 rx_bytes)
expect 0 nicpin compare --runs 2 --warmup 0 --format json nic0 -- iperf3 -c 10.9.0.2 -t 1
cat /proc/interrupts > /tmp/now; both=$(($(counter nic0 tx_bytes) - tx + $(counter nic0 rx_bytes) - rx))
cp "$OUT" /tmp/compare.json
sum() { sed -n "s/^ *\"$1\": \([0-9.e+-]*\),*\$/\1/p" /tmp/compare.json | awk '{n += $1} END {printf "%.0f\n", n}'; }
taken /tmp/base /tmp/now nic0 | awk '{n += $3} END {print n}' > /tmp/sum
reported=$(($(sum local_interrupts) + $(sum remote_interrupts)))
holds "interrupts of all runs: $reported of $(cat /tmp/sum)" [ $reported -le "$(cat /tmp/sum)" ]
at_least "interrupts of all runs, nearly all" $(($(cat /tmp/sum) * 9 / 10 - 50)) $reported
bytes=$(awk '/"wall_seconds":/ {w = $2 + 0} /"gbit_per_second":/ {g = $2 + 0; n += w * g * 125000000} END {printf "%.0f\n", n}' /tmp/compare.json)
holds "bytes of all runs: $bytes of $both" [ "$bytes" -ge $((both * 8 / 10)) ]
holds "bytes of all runs: no more than $both" [ "$bytes" -le $((both + both / 20)) ]
# The server may still be at the test before.
expect 0 nicpin compare nic0 -- sh -c 'iperf3 -c 10.9.0.2 -t 1 || { sleep 1; iperf3 -c 10.9.0.2 -t 1; }'; cat "$OUT"
expect 0 nicpin compare --runs 1 --warmup 0 nic0 -- grep Cpus_allowed_list /proc/self/status
near=$(sed -n 's/^ *near  node 0  CPUs //p' "$OUT") far=$(sed -n 's/^ *far   node 1  CPUs //p' "$OUT")
equal "where the command ran" "$near $far" "$(sed -n 's/^Cpus_allowed_list:\t*//p' "$ERR" | xargs)"
disconnect
finish
