#!/bin/sh
# shellcheck shell=dash disable=SC1091
# two-node, two-node-ir: whatever is killed, refused or not confirmed, everything comes back. Needs strace.
. /harness/lib.sh
. /payload/assert.sh

section() { echo "-- $1"; }
restored() { # WHAT
  expect 0 nicpin restore
  snapshot /tmp/now; same_file "the machine after restore, $1" /tmp/before /tmp/now
  holds "no record is left, $1" [ ! -e /run/nicpin/state.json ]
}
unwatched() { ! grep -q "FLOCK .* $(cat /run/nicpin/try.lock) " /proc/locks; }
snapshot /tmp/before
expect 0 nicpin plan --format sh; cp "$OUT" /tmp/plan.sh
N=$(writes /tmp/plan.sh | wc -l)

section "kill -9 at every tenth write(2)"
# die_at N COMMAND...: SIGKILL at its N-th write; succeeds when it was killed
die_at() { local n=$1; shift; strace -f -qq -o /dev/null -e trace=write -e "inject=write:signal=KILL:when=$n" "$@" >/dev/null 2>&1; [ $? = 137 ]; }
kills=0 n=1
while die_at $n nicpin apply; do
  kills=$((kills + 1))
  restored "apply killed at write $n"
  n=$((n + 10))
done
at_least "times that apply was killed" 2 $kills
as_planned /tmp/plan.sh
kills=0 n=1
while die_at $n nicpin restore; do
  kills=$((kills + 1))
  restored "restore killed at write $n"
  expect 0 nicpin apply
  n=$((n + 10))
done
at_least "times that restore was killed" 2 $kills
restored "restore not killed"
echo "   apply and restore: one file after the other, $N values"

section "kill -9 around every step of the record"
for call in mkdirat fsync renameat; do
  rm -rf /run/nicpin
  strace -f -qq -o /dev/null -e "trace=$call" -e "inject=$call:signal=KILL" nicpin apply >/dev/null 2>&1
  equal "apply killed at $call" 137 $?
  expect 0 nicpin restore
  snapshot /tmp/now; same_file "the machine after restore, killed at $call" /tmp/before /tmp/now
done
rm -rf /run/nicpin

section "the kernel refuses one of many, and all or nothing is asked for"
last=$(writes /tmp/plan.sh | tail -1 | cut -d' ' -f1)
last=$(readlink -f "$last")
mount -o bind "$last" "$last" && mount -o remount,bind,ro "$last"
expect 1 nicpin apply --atomic
equal "values changed" 0 "$(number changed)"
equal "values refused" 1 "$(number refused)"
contains "the kernel's answer" EROFS "$OUT"
umount "$last"
snapshot /tmp/now; same_file "the machine after --atomic" /tmp/before /tmp/now
expect 0 nicpin restore --json
contains "a restore after --atomic" '"results": []' "$OUT"

section "on trial"
expect 0 nicpin apply --try 12
as_planned /tmp/plan.sh
holds "the trial ends" poll 30 unwatched
snapshot /tmp/now; same_file "the machine after a trial that nobody confirmed" /tmp/before /tmp/now
expect 1 nicpin confirm
contains "too late" "too late" "$ERR"
expect 0 nicpin apply --try 600
expect 1 nicpin apply
contains "what waits" "nicpin confirm" "$ERR"
expect 0 nicpin confirm
holds "the trial ends when it is confirmed" poll 10 unwatched
as_planned /tmp/plan.sh
restored "after a trial that was confirmed"
expect 0 nicpin apply --try 600
kill -9 "$(cat /run/nicpin/try.lock)"
holds "the watcher is dead" poll 10 unwatched
restored "after the watcher of a trial was killed"
# The login ends during the trial: the session's leader and its group are killed.
setsid sh -c 'nicpin apply --try 12 > /tmp/said 2>&1; echo done > /tmp/done; sleep 100' & login=$!
holds "an apply in a session of its own" poll 10 test -e /tmp/done
as_planned /tmp/plan.sh
kill -9 "-$login"
holds "the trial ends without its login" poll 30 unwatched
snapshot /tmp/now; same_file "the machine after a login that was lost" /tmp/before /tmp/now

section "a trial after another one whose watcher is stopped"
expect 0 nicpin apply --try 600
stopped=$(cat /run/nicpin/try.lock)
kill -STOP "$stopped"
expect 0 nicpin restore
expect 0 nicpin apply --try 2
kill -CONT "$stopped"
holds "the later trial ends" poll 10 unwatched
snapshot /tmp/now; same_file "the machine after the later trial" /tmp/before /tmp/now

section "a full /run"
full() { dd if=/dev/zero of=/run/nicpin/full bs=1k 2>/dev/null; holds "the state directory is full" refuses sh -c 'echo > /run/nicpin/more'; }
refuses() { ! "$@" 2>/dev/null; }
rm -rf /run/nicpin; mkdir /run/nicpin; mount -t tmpfs -o size=64k,mode=755 none /run/nicpin
expect 0 nicpin apply --try 2
full
holds "the trial ends without room" poll 10 unwatched
snapshot /tmp/now; same_file "the machine after a trial without room" /tmp/before /tmp/now
rm -f /run/nicpin/full /run/nicpin/more
expect 0 nicpin apply
full
expect 0 nicpin apply
equal "values changed without room" 0 "$(number changed)"
restored "without room"
umount /run/nicpin

section "other users and the locks"
expect 0 nicpin apply
holds "nobody cannot hold the lock" refuses as_nobody flock -n -s /run/nicpin/lock true
restored "after an attempt to hold the lock"

section "a masked /proc/irq"
expect 0 nicpin apply
mount -t tmpfs none /proc/irq
expect 1 nicpin restore
contains "what is missing" "/proc/irq: is empty, as in a container that masks it" "$ERR"
holds "the record is kept" [ -e /run/nicpin/state.json ]
umount /proc/irq
restored "after /proc/irq was masked"

section "names that are swapped while restore runs"
swap_names() {
  for _ in 1 2 3 4 5 6 7 8; do
    ip link set dev nic0 name swap; ip link set dev nic1 name nic0; ip link set dev swap name nic1
  done
}
for round in 1 2 3 4 5 6 7 8 9 10; do
  expect 0 nicpin apply
  swap_names & swapper=$!
  nicpin restore >/tmp/said 2>&1
  wait $swapper
  restored "while names were swapped, round $round"
done

if [ "$TOPOLOGY" = two-node-ir ]; then
  section "vectors that the kernel manages"
  managed=0
  grep -E 'virtio[0-9]+-req|nvme[0-9]+q[1-9]' /proc/interrupts | sed 's/^ *\([0-9]*\):.*/\1/' > /tmp/managed
  while read -r irq; do
    was=$(cat "/proc/irq/$irq/smp_affinity")
    case $(try_write "/proc/irq/$irq/smp_affinity" "$was") in
      *"Operation not permitted"|*"put/output error") managed=$((managed + 1));;
    esac
    equal "writes to the managed IRQ $irq" 0 "$(writes /tmp/plan.sh | grep -c "^/proc/irq/$irq/")"
  done < /tmp/managed
  at_least "vectors that the kernel manages" 4 $managed
  echo "   $managed vectors of disks, left alone"
fi
finish
