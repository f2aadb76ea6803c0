#!/bin/bash
# shellcheck disable=SC1091,SC2086
# nicpin-watch.service: how many runs, what it costs while nothing happens; it does not fight; trial, restore, kill -9 and
# --observe beside it. Needs ethtool and irqbalance.
. /harness/lib.sh
. /payload/assert.sh
. /payload/watch-lib.sh

section "links that flap, and links that are virtual"
fresh
before=$(runs) began=$(milliseconds)
# One process, to take less than a minute
for _ in $(seq 60); do echo link set dev nic1 down; echo link set dev nic1 up; done | ip -batch -
took=$((($(milliseconds) - began) / 1000))
echo "60 flaps in $took s"
poll 90 quiet; poll 70 as_before
echo "60 flaps: $(($(runs) - before)) runs"
journal | tail -n 14
most=$((took / 2 + 6))   # one in two seconds, and those after the last flap
at_least "runs left of $most for 60 flaps" 0 $((most - $(runs) + before))
expect 0 nicpin check --exact
fresh
before=$(runs)
for n in $(seq 100); do ip link add "v$n" type veth peer name "w$n"; done
ip link set dev v1 up; ip link set dev w1 up
sleep 3
equal "runs for 100 veth pairs" 0 $(($(runs) - before))
for n in $(seq 100); do ip link del "v$n"; done
sleep 3
equal "runs for 100 veth pairs that go" 0 $(($(runs) - before))

section "inotify is used up by others"
sysctl -qw fs.inotify.max_user_instances=0
fresh
holds "it says so" sh -c "journalctl --unit $UNIT --output cat | grep -q 'max_user_instances'"
corrected "channels without inotify" ethtool -L nic0 combined 3
corrected "channels back without inotify" ethtool -L nic0 combined 4
sysctl -qw fs.inotify.max_user_instances=128
fresh

section "what it costs"
poll 20 quiet; sleep 5   # the kernel may still remove the pairs
before=$(wakeups); sleep 10; after=$(wakeups)
equal "wake-ups in ten idle seconds" 0 $((after - before))
pid=$(watcher_pid)
grep -E '^(VmRSS|RssAnon|RssFile)' "/proc/$pid/status"
grep -E '^(Rss|Pss|Private_Clean|Private_Dirty)' "/proc/$pid/smaps_rollup"
private=$(awk '/^Private_/ {sum += $2} END {print sum}' "/proc/$pid/smaps_rollup")
echo "private memory: $private kB"
[ "$LIMIT" -gt 2000 ] || at_least "kB left of 3 MB private" 0 $((3072 - private))

section "irqbalance starts under it"
echo 'IRQBALANCE_ARGS="--interval=1"' > /etc/default/irqbalance
fresh
expect 0 systemctl restart irqbalance.service
poll 20 more_runs 1
poll 20 quiet
expect 0 systemctl restart irqbalance.service
poll 20 quiet
wire_up nic0 10.9.0.1 nic1 10.9.0.2
ping -q -c 1000 -i 0.02 -w 30 10.9.0.2 > /dev/null
sleep 15
wire_down nic0 nic1 10.9.0.1
poll 20 quiet
expect 0 nicpin check --exact
journal | tail -5

section "irqbalance does not answer"
fresh
balancer=$(systemctl show irqbalance.service --property=MainPID --value)
kill -STOP "$balancer"
corrected "ethtool -L, igb" ethtool -L nic1 combined 3
corrected "ethtool -L back, igb" ethtool -L nic1 combined 4
kill -CONT "$balancer"
poll 60 quiet
equal "irqbalance" "$balancer" "$(systemctl show irqbalance.service --property=MainPID --value)"
systemctl stop irqbalance.service

section "a program that writes one vector every second"
guarded --guard
irq=$(irqs nic1 | sed -n 2p)
file=/proc/irq/$irq/smp_affinity_list planned=$(cat "/proc/irq/$irq/smp_affinity_list")
restores=0
for _ in $(seq 12); do
  [ "$(cat "$file")" != "$planned" ] || restores=$((restores + 1))
  echo 0 > "$file"; sleep 1
done
restores=$((restores - 1))   # the first look was before the first write
echo "restores of IRQ $irq: $restores"
at_least "restores left of four" 0 $((4 - restores))
at_least "restores" 2 $restores
equal "warnings" 1 "$(journal | grep -c 'from now on it is restored after 1 min')"
journal | grep 'from now on it is restored'
journalctl --unit $UNIT --output json | grep -c NICPIN_SETTING > /tmp/fields
equal "messages with the field NICPIN_SETTING" 1 "$(cat /tmp/fields)"
spoil nic3
poll 10 sh -c "! nicpin check --exact --json nic3 | grep -q moved-by-other"
expect 0 nicpin check --exact nic3
equal "the vector that is fought for" 0 "$(cat "$file")"
expect 0 nicpin status; contains "status" "not restored until" "$OUT"
unguarded

section "trial, restore and apply by hand"
fresh
expect 0 nicpin apply --try 20 --scope remote nic0
contains "apply --try" "nicpin watch writes nothing" "$OUT"
ip link set dev nic1 down; ip link set dev nic1 up
sleep 2
expect 0 nicpin check --exact --scope remote nic0
poll 60 as_before; poll 20 quiet
expect 0 nicpin check --exact
fresh
expect 0 nicpin restore
contains "restore" "nicpin watch is paused" "$OUT"
snapshot /tmp/restored
ip link set dev nic1 down; ip link set dev nic1 up
sleep 4
snapshot /tmp/now; same_file "the machine after an event while paused" /tmp/restored /tmp/now
systemctl show $UNIT --property=StatusText --value | grep paused
expect 0 nicpin apply
contains "apply" "nicpin watch is no longer paused" "$OUT"
poll 20 quiet
corrected "after the pause: ethtool -L" ethtool -L nic0 combined 2
ethtool -L nic0 combined 4; poll 20 quiet

section "kill -9"
systemctl stop $UNIT
nicpin restore > /dev/null
snapshot /tmp/original
systemctl start $UNIT
fresh
pid=$(watcher_pid); kill -9 "$pid"
other() { local now; now=$(watcher_pid); [ "$now" != 0 ] && [ "$now" != "$pid" ]; }
holds "it is started again" poll 20 other
poll 20 more_runs 0; poll 20 quiet
expect 0 nicpin check --exact
# Killed: a run, the watcher, or both, during a run
for whom in child watcher both; do
  fresh
  pid=$(watcher_pid)
  ethtool -L nic0 combined 2; ethtool -L nic0 combined 4
  # A stopped run still exists when it is killed.
  child() { kill -USR1 "$pid"; CHILD=$(pgrep --parent "$pid" | head -1); [ -n "$CHILD" ] && kill -STOP "$CHILD"; }
  holds "a run is at work" poll 20 child
  case $whom in
    child) kill -9 "$CHILD";;
    watcher) kill -9 "$pid";;
    both) kill -9 "$pid" "$CHILD";;
  esac
  poll 30 as_before
  poll 30 quiet
  expect 0 nicpin check --exact
done
for file in /run/nicpin/*.json; do holds "$file is whole" grep -q '^}$' "$file"; done
systemctl stop $UNIT
expect 0 nicpin check --exact
expect 0 nicpin restore
snapshot /tmp/now; same_file "the machine after restore" /tmp/original /tmp/now
expect 0 systemctl start $UNIT
poll 20 more_runs 0; poll 20 quiet
expect 0 nicpin check --exact

section "--observe writes nothing"
systemctl stop $UNIT
# The kernel traces each write(2) of nicpin to a file. An observer cannot make its own state file.
trace=/sys/kernel/tracing
[ -d $trace/events ] || mount -t tracefs none $trace
echo 'fd > 2 && (comm == "nicpin" || comm == "exe")' > $trace/events/syscalls/sys_enter_write/filter
echo 1 > $trace/events/syscalls/sys_enter_write/enable
traced() { grep -c sys_write $trace/trace; }
expect 0 nicpin restore
at_least "writes of a restore" 20 "$(traced)"
equal "records after a restore" "" "$(ls /run/nicpin/state.json 2>/dev/null)"
mount --bind -o ro /run/nicpin /run/nicpin
: > $trace/trace
# The driver spreads the interrupts anew, which irqbalance may have moved before the first apply.
ethtool -L nic0 combined 2; ethtool -L nic0 combined 4
snapshot /tmp/before
: > /tmp/observed
observed() { # WHAT COMMAND...: a new observer reports after it
  local what=$1 observer; shift
  nicpin watch --observe --verbose > /tmp/observer 2>&1 & observer=$!
  poll 20 grep -q start: /tmp/observer
  "$@" > /dev/null 2>&1
  holds "the observer reports: $what" poll 20 sh -c "[ \$(grep -c 'not as planned' /tmp/observer) -gt 1 ]"
  sleep 2
  kill $observer; wait $observer
  equal "status of the observer: $what" 0 $?
  cat /tmp/observer >> /tmp/observed
}
observed "flap" sh -c 'ip link set dev nic1 down; ip link set dev nic1 up'
observed "ethtool -L" ethtool -L nic0 combined 2
ethtool -L nic0 combined 4
snapshot /tmp/now; same_file "the machine beside an observer" /tmp/before /tmp/now
for nic in nic0 nic1 nic2 nic3; do observed "unbind and bind, $nic" rebind $nic; done
observed "CPU 3 offline" cpu3 0
observed "CPU 3 online" cpu3 1
observed "MTU" ip link set dev nic2 mtu 1400
observed "ring size" ethtool -G nic1 rx 512
observed "suspend" suspend
cat /tmp/observed
contains "the observers" "nicpin apply would change them" /tmp/observed
equal "writes of the observers and their runs" 0 "$(traced)"
echo 0 > $trace/events/syscalls/sys_enter_write/enable
umount /run/nicpin
equal "records of the observer" "" "$(ls /run/nicpin/state.json 2>/dev/null)"

section "either unit stops the other"
expect 0 systemctl start $UNIT
expect 0 systemctl start nicpin.service
equal "the watcher beside nicpin.service" inactive "$(systemctl is-active $UNIT)"
expect 0 systemctl start $UNIT
equal "nicpin.service beside the watcher" inactive "$(systemctl is-active nicpin.service)"
poll 20 more_runs 0; poll 20 quiet
expect 0 nicpin check --exact
finish
