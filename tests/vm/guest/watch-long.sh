#!/bin/bash
# shellcheck disable=SC1091,SC2086
# nicpin-watch.service under 10,000 events in ten minutes, and with a receive buffer so small that the kernel loses
# messages: descriptors and memory as at the start, plan back. Needs ethtool.
. /harness/lib.sh
. /payload/assert.sh
. /payload/watch-lib.sh
as_many_descriptors() { [ "$(descriptors)" = "$fds" ]; }
descriptors() { find "/proc/$(watcher_pid)/fd" -mindepth 1 | wc -l; }
memory() { awk '/^Private_Dirty/ {sum += $2} END {print sum}' "/proc/$(watcher_pid)/smaps_rollup"; }

section "a receive buffer that is too small"
sysctl -qw net.core.rmem_default=2304
fresh
# A few messages fill the buffer while the watcher is stopped.
kill -STOP "$(watcher_pid)"
for n in $(seq 40); do ip link set dev nic3 mtu $((1400 + n)); done
ethtool -L nic0 combined 2
kill -CONT "$(watcher_pid)"
poll 80 as_before
expect 0 nicpin check --exact
poll 30 quiet
journalctl --unit $UNIT --output cat | grep 'lost events' | tail -2
holds "messages were lost" sh -c "journalctl --unit $UNIT --output cat | grep -q 'lost events'"
ethtool -L nic0 combined 4
sysctl -qw net.core.rmem_default=212992
poll 80 as_before
expect 0 nicpin check --exact

section "10,000 events"
fresh
poll 20 quiet
fds=$(descriptors) kb=$(memory) before=$(runs) began=$(milliseconds)
for n in $(seq 2000); do
  # Two changes of hardware, and three virtual ones
  ip -batch - <<END
link set dev nic3 txqueuelen $((500 + n))
link set dev nic2 txqueuelen $((500 + n))
link add v type veth peer name w
link set dev v up
link del v
END
  # The drivers reset the devices for these.
  [ $((n % 20)) != 0 ] || { ip link set dev nic3 mtu $((1400 + n / 20)); ip link set dev nic2 mtu $((1400 + n / 20)); }
  [ $((n % 100)) != 0 ] || ethtool -L nic0 combined $((2 + n / 100 % 2))
done
echo "events for $((($(milliseconds) - began) / 1000)) s: $(($(runs) - before)) runs"
ethtool -L nic0 combined 4
poll 120 as_before
expect 0 nicpin check --exact
# A run has two of its own while it works.
poll 70 as_many_descriptors
holds "descriptors: $fds before, $(descriptors) now" as_many_descriptors
echo "private dirty memory: $kb kB before, $(memory) kB after"
at_least "kB left of 512 kB more than before" 0 $((512 + kb - $(memory)))
finish
