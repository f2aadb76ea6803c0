#!/bin/sh
# shellcheck shell=dash disable=SC1091
# Nodes as the kernel's files tell them, and memory rates of every pair of nodes: that there are some, not how high.
. /harness/lib.sh
. /payload/assert.sh
NODE=/sys/devices/system/node

expect 0 nicpin nodes; cp "$OUT" /tmp/table
row() { awk -v node="$1" 'NF == 0 && seen {exit} $1 == node {seen = 1; print; exit}' /tmp/table; }
for node in 0 1 2 3 4; do
  kib=$(sed -n 's/^Node [0-9]* MemTotal: *\([0-9]*\) kB$/\1/p' $NODE/node$node/meminfo)
  cpus=$(cat $NODE/node$node/cpulist)
  equal "memory and CPUs of node $node" "$((kib / 1024)) MiB ${cpus:-none}" "$(row $node | awk '{print $2, $3, $6}')"
  equal "distances of node $node" "$(xargs < $NODE/node$node/distance)" \
    "$(sed -n "s/^from $node  *//p" /tmp/table | xargs)"
  equal "counters of node $node" 6 "$(sed -n "s/^node $node  *\([0-9]\)/\1/p" /tmp/table | tail -1 | wc -w)"
done
contains "cards on node 2" "  nic2 (vmxnet3), nic7 (igb)" /tmp/table
contains "cards on no node" "On no known node: nic5 (virtio_net), nic6 (e1000)." /tmp/table

# Four nodes with CPUs read the memory of five.
expect 0 nicpin nodes --bandwidth --format json; cp "$OUT" /tmp/rates
equal "measured pairs" 20 "$(grep -c '"memory_of"' /tmp/rates)"
equal "pairs without a rate" "" "$(grep '"bytes_per_second": [0-9]\{0,6\},*$' /tmp/rates)"
equal "cores that read" 2 "$(sed -n 's/.*"threads": \([0-9]*\),/\1/p' /tmp/rates | sort -u)"
equal "words on standard error" "" "$(cat "$ERR")"
expect 0 nicpin nodes --bandwidth
equal "rows of rates" 4 "$(grep -c '^CPUs of [0-3] (2 threads)\( *[0-9]*\.[0-9]\)\{5\}$' "$OUT")"
# Memory that the allocator keeps from another node is not used.
expect 0 env MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824 nicpin nodes --bandwidth
chmod 755 /payload /payload/nicpin
expect 0 as_nobody "/payload/nicpin nodes"
finish
