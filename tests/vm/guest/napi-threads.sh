#!/bin/sh
# shellcheck shell=dash disable=SC1091
# four-node, 6.1, 6.12 and 7: threaded NAPI of virtio_net, igb, vmxnet3 and e1000e. Each thread is set, read back by another
# program, runs where it was planned while one flow at a time wakes it, is restored exactly, also after kill -9 of apply;
# check names a change by another hand. Needs util-linux for taskset, and strace.
. /harness/lib.sh
. /payload/assert.sh

P=/tmp/plan.json
ON="nic0 nic1 nic2 nic3"

# threads: "PID CPUS" of each NAPI thread, by the kernel
threads() {
  local pid
  # shellcheck disable=SC2013 # numbers on one line
  for pid in $(cat /proc/2/task/2/children); do
    grep -qs '^napi/' "/proc/$pid/comm" && sed -n "s/^Cpus_allowed:\t/$pid /p" "/proc/$pid/status"
  done
}
# planned JSON: "PID INTERFACE ROLE QUEUE SOURCE CPUS IRQ" of each thread
planned() {
  awk -F'"' '
    function number(text) {gsub(/[^0-9]/, "", text); return text == "" ? "-" : text}
    /^ *"name":/ {nic = $4}
    /^ *"pid":/ {pid = number($3); role = queue = source = irq = "-"}
    /^ *"irq":/ {irq = number($3)}
    /^ *"role":/ {role = $4 == "" ? "-" : $4}
    /^ *"queue":/ {queue = number($3)}
    /^ *"source":/ {source = $4 == "" ? "-" : $4}
    /^ *"cpus":/ {cpus = $4}
    /^ *}/ {if (pid != "") print pid, nic, role, queue, source, cpus, irq; pid = ""}' "$1"
}

echo "--- without threads nothing is read or said"
expect 0 nicpin plan --format json
equal "threads in the plan" "" "$(planned "$OUT")"

snapshot /tmp/before.files
for nic in $ON; do echo 1 > "/sys/class/net/$nic/threaded"; done
threads > /tmp/before
expect 0 nicpin plan --format json; cp "$OUT" $P
planned $P > /tmp/planned
sed 's/^/  /' /tmp/planned
at_least "threads in the plan" 21 "$(wc -l < /tmp/planned)"
equal "threads that the kernel has and the plan has not" "" \
  "$(awk 'NR == FNR {planned[$1]; next} !($1 in planned) {print $1}' /tmp/planned /tmp/before)"
for nic in $ON; do
  equal "$nic: receiving vectors without a thread" "" "$(vectors $P | awk -v nic="$nic" '
    FILENAME == "/tmp/planned" {has[$7]; next} $2 == nic && $3 != "tx" && !($1 in has) {print $1}' /tmp/planned -)"
done
expect 0 as_nobody nicpin plan --format json
same_file "the plan of another user" $P "$OUT"

echo "--- set, read back, proven"
expect 2 nicpin check --exact
expect 0 nicpin apply
expect 0 nicpin check --exact
expect 0 nicpin apply
equal "a second apply changes" 0 "$(number changed)"
# shellcheck disable=SC2034
while read -r pid nic role queue source cpus irq; do
  equal "$nic $role $queue: taskset" "$cpus" "$(taskset -pc "$pid" | sed 's/.*: //')"
  case $cpus in 4|5|6|7) local_to=nic1;; 8|9|1[01]) local_to=nic2;; 1[2-5]) local_to=nic3;; *) local_to=nic0;; esac
  [ "$role" = - ] || equal "$nic $role $queue: the interface of its CPU's node" "$nic" "$local_to"
done < /tmp/planned
# Siblings have adjacent numbers.
equal "threads on another core than that of their queue's interrupts" "" "$(vectors $P | awk '
  FILENAME == "/tmp/planned" {cpu[$7] = $6; next}
  $1 in cpu && int($5 / 2) != int(cpu[$1] / 2) {print}' /tmp/planned -)"

# switches: "PID TIMES CPU" of each planned thread: how often it ran, and where last
switches() {
  local pid rest
  while read -r pid rest; do
    echo "$pid $(awk '/ctxt_switches/ {n += $2} END {print n}' "/proc/$pid/status") $(sed 's/.*) //' "/proc/$pid/stat" | cut -d' ' -f37)"
  done < /tmp/planned
}
counts() { awk 'NR == 1 {n = NF; next} {t = 0; for (i = 2; i <= n + 1; i++) t += $i; print $1 + 0, t}' /proc/interrupts; }
# flow FROM: one flow of 60 requests to $NEAR; igb may interrupt several times for each. The vector that interrupts most
# wakes its thread, and the thread that runs most is woken by its vector: they may belong to different queues, as
# replies leave by another queue than requests arrive on.
flow() {
  counts > /tmp/irqs.was; switches > /tmp/threads.was
  in_ns ping -q -c 60 -i 0.01 -W 1 -I "$1" 10.9.0.1 > /dev/null
  switches > /tmp/threads.is; counts > /tmp/irqs.is
  awk -v nic="$NEAR" '
    FILENAME == "/tmp/planned" {if ($2 == nic && $3 != "-" && $3 != "tx") {irq[$1] = $7; at[$1] = $6; ours[$7]}; next}
    FILENAME == "/tmp/threads.was" {ran[$1] = $2; next}
    FILENAME == "/tmp/irqs.was" {fired[$1] = $2; next}
    FILENAME == "/tmp/threads.is" && $1 in irq {by = runs[irq[$1]] = $2 - ran[$1]; if (by > most) {most = by; pid = $1; cpu = $3}}
    FILENAME == "/tmp/irqs.is" && $1 in ours {by = interrupts[$1] = $2 - fired[$1]; if (by > busiest) {busiest = by; line = $1}}
    END {print line, busiest + 0, runs[line] + 0, irq[pid], interrupts[irq[pid]] + 0, most + 0, cpu, at[pid]}' \
    /tmp/planned /tmp/threads.was /tmp/irqs.was /tmp/threads.is /tmp/irqs.is > /tmp/flow
  read -r fired busiest runs wakes interrupts times cpu at < /tmp/flow
  echo "  $NEAR, from $1: IRQ $fired fired $busiest times, its thread ran $runs times; the thread of IRQ $wakes," \
    "which fired $interrupts times, ran $times times, last on CPU $cpu"
  at_least "$NEAR, from $1: how often the thread of the busiest IRQ ran" 50 "$runs"
  at_least "$NEAR, from $1: how often the IRQ of the thread that ran most fired" "$((times / 3))" "$interrupts"
  equal "$NEAR, from $1: where it ran" "$at" "$cpu"
  at_least "$NEAR, from $1: how often it ran" 20 "$times"
  echo "$wakes" >> /tmp/woken
}
for pair in $(pairs); do
  connect "$pair" $P
  settle $P
  : > /tmp/woken
  for n in 60 71 82 93 104 115; do
    in_ns ip addr add "10.9.0.$n/24" dev "$FAR"
    flow 10.9.0.$n
  done
  # QEMU's vmxnet3 fills receive queue 0 only; nic3 has one queue.
  case $NEAR in nic0|nic1) at_least "$NEAR: threads that flows have woken" 2 "$(sort -u /tmp/woken | wc -l)";; esac
  (in_ns ping -q -c 150 -i 0.01 -I 10.9.0.60 10.9.0.1 >/dev/null) & ping=$!
  expect 0 nicpin status --all --seconds 1 "$NEAR"
  wait $ping
  grep -o "thread .*ran [0-9]* times.*" "$OUT" | head -1 | sed 's/^/  status: /'
  tr -s ' \n' ' ' < "$OUT" > /tmp/words
  contains "$NEAR: status has where threads ran" " of them ran there" /tmp/words
  equal "$NEAR: threads that are proven" "" "$(grep -F ', 0 of them ran there' /tmp/words)"
  disconnect
done

echo "--- a change by another hand"
pid=$(awk '$2 == "nic1" {print $1; exit}' /tmp/planned)
taskset -pc 0 "$pid" > /dev/null
expect 2 nicpin check --exact --json
contains "what differs" "\"path\": \"/proc/$pid\"" "$OUT"
contains "why" '"reason": "moved-by-other"' "$OUT"
expect 0 nicpin apply
equal "values that apply changed" 1 "$(number changed)"

echo "--- a process id is that of another process by now"
sleep 1000 & other=$!
taskset -p "$other" > /tmp/other
expect 0 nicpin plan --format json
sed "s/\"pid\": $pid\b/\"pid\": $other/; s,/proc/$pid\",/proc/$other\"," "$OUT" > /tmp/forged.json
nicpin apply --plan /tmp/forged.json > /dev/null 2>&1
taskset -p "$other" > /tmp/now; same_file "another process" /tmp/other /tmp/now
kill $other

echo "--- restored"
expect 0 nicpin restore
threads > /tmp/now; same_file "the threads after restore" /tmp/before /tmp/now
snapshot /tmp/now; same_file "the files after restore" /tmp/before.files /tmp/now

echo "--- kill -9 of apply, one or some threads after the first"
kills=0
for n in 1 2 5 9 20; do
  strace -f -qq -o /dev/null -e trace=sched_setaffinity -e "inject=sched_setaffinity:signal=KILL:when=$n" nicpin apply >/dev/null 2>&1
  [ $? != 137 ] || kills=$((kills + 1))
  expect 0 nicpin restore
  threads > /tmp/now; same_file "the threads after kill -9 at $n" /tmp/before /tmp/now
done
equal "times that apply was killed" 5 $kills

echo "--- the kernel refuses one, and all or nothing is asked for"
strace -f -qq -o /dev/null -e trace=sched_setaffinity -e "inject=sched_setaffinity:error=EINVAL:when=9" nicpin apply --atomic >/tmp/stdout 2>&1
equal "apply --atomic with a refusal" 1 $?
threads > /tmp/now; same_file "the threads after --atomic" /tmp/before /tmp/now
contains "what was refused" "or this thread cannot be moved" /tmp/stdout

echo "--- kept, and no threads any more"
expect 0 nicpin apply --napi-threads keep
threads > /tmp/now; same_file "the threads that are kept" /tmp/before /tmp/now
expect 0 nicpin restore
expect 0 nicpin apply
for nic in $ON; do echo 0 > "/sys/class/net/$nic/threaded"; done
expect 0 nicpin check --exact
expect 0 nicpin plan --format json
equal "threads in the plan" "" "$(planned "$OUT")"
for nic in $ON; do echo 1 > "/sys/class/net/$nic/threaded"; done
expect 0 nicpin apply
expect 0 nicpin restore
snapshot /tmp/now; same_file "the files at the end" /tmp/before.files /tmp/now
finish
