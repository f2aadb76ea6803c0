#!/bin/sh
# shellcheck shell=dash disable=SC1091
# four-node: the RSS table of igb and vmxnet3 is set, read back by ethtool, checked and restored; on igb, flows follow it,
# one at a time. QEMU's vmxnet3 has no hash, and its virtio no table here. Needs ethtool and strace.
. /harness/lib.sh
. /payload/assert.sh

# queues NIC: the queues that ethtool shows in its table
queues() { ethtool -x "$1" | awk '/^ *[0-9]+:/ {for (i = 2; i <= NF; i++) print $i}' | sort -un | tr '\n' ' '; }
# all NIC: table, key and function
all() { ethtool -x "$1"; }
restored() { # NIC WHAT
  expect 0 nicpin restore
  all "$1" > /tmp/now; same_file "table, key and function of $1, $2" "/tmp/before.$1" /tmp/now
}

for nic in nic1 nic2; do
  all $nic > /tmp/before.$nic
  equal "queues of $nic before" "0 1 2 3 4 5 6 7 " "$(queues $nic)"
  expect 0 nicpin apply $nic
  equal "queues of $nic without --rss" "0 1 2 3 4 5 6 7 " "$(queues $nic)"
  expect 2 nicpin check --exact $nic --rss 3
  expect 0 nicpin apply $nic --rss 3
  equal "queues of $nic with --rss 3" "0 1 2 " "$(queues $nic)"
  expect 0 nicpin check --exact $nic --rss 3
  expect 0 nicpin apply $nic --rss 3
  equal "values changed by a second apply" 0 "$(number changed)"
  expect 0 nicpin status -v $nic --rss 3
  contains "the status of $nic" "RSS table reaches 3 of 8" "$OUT"
  expect 0 ethtool -X $nic equal 5
  expect 2 nicpin check --exact --json $nic --rss 3
  contains "what check says of another hand" '"reason": "moved-by-other"' "$OUT"
  expect 2 nicpin check --exact -v $nic --rss 3
  contains "what it names" "ethtool -X $nic" "$OUT"
  restored $nic "after another hand"
  # Two cores of node 1 and of node 2 have eight queues.
  expect 0 nicpin apply $nic --irq-cores 1 --rss candidates
  equal "queues of $nic on one core" "0 " "$(queues $nic)"
  restored $nic "after --irq-cores 1"
  expect 0 nicpin plan $nic --rss 3 --format sh
  cp "$OUT" /tmp/plan.sh
  expect 0 sh /tmp/plan.sh
  expect 0 nicpin check --exact $nic --rss 3
  equal "queues of $nic by the script" "0 1 2 " "$(queues $nic)"
  if [ $nic = nic1 ]; then ethtool -X nic1 weight 1 1 1 1 1 1 1 1; else ethtool -X $nic default; fi
  expect 0 nicpin restore
  all $nic > /tmp/now; same_file "table of $nic by ethtool" /tmp/before.$nic /tmp/now
done

# A driver without a table refuses the request.
expect 1 nicpin apply nic0 --rss 2
contains "no table" "the driver reports no RSS table" "$OUT"
expect 0 nicpin restore

# ------------------------------ kill -9 before each of the last ioctls: the table is set by one of them
strace -f -qq -o /tmp/trace -e trace=ioctl nicpin apply nic1 --rss 3 >/dev/null
ioctls=$(grep -c 'ioctl(' /tmp/trace)
restored nic1 "before any kill"
kills=0 n=$((ioctls - 20))
while strace -f -qq -o /dev/null -e trace=ioctl -e "inject=ioctl:signal=KILL:when=$n" nicpin apply nic1 --rss 3 >/dev/null 2>&1; [ $? = 137 ]; do
  kills=$((kills + 1)) n=$((n + 1))
  queues nic1 >> /tmp/tables
  echo >> /tmp/tables
  restored nic1 "killed at ioctl $n"
done
at_least "times that apply was killed" 4 $kills
equal "tables that killed applies left" "0 1 2 ,0 1 2 3 4 5 6 7 ," "$(sort -u /tmp/tables | tr '\n' ',')"
restored nic1 "after the last apply"

# ------------------------------------------------------------------- with channels
expect 0 nicpin apply nic1 --channels 4 --rss 2
equal "queues of nic1 with four channels" "0 1 " "$(queues nic1)"
restored nic1 "after other channels"
# The kernel refuses to remove queues of a table that was set, unless the table is reset first.
expect 0 ethtool -X nic1 equal 8
expect 1 ethtool -L nic1 combined 2
all nic1 > /tmp/before.nic1
expect 0 nicpin apply nic1 --channels 2 --rss 2
equal "queues of nic1 with two channels" "0 1 " "$(queues nic1)"
restored nic1 "after two channels"
# A table that was the default is the default again, and follows the channels.
expect 0 nicpin apply nic1 --rss 2
restored nic1 "a default table"
expect 0 ethtool -L nic1 combined 2
expect 0 ethtool -L nic1 combined 8

# --------------------------------------------------- transmit queues for receive queues
rxqs() { cat /sys/class/net/nic0/queues/tx-*/xps_rxqs /sys/class/net/nic0/queues/tx-*/xps_cpus; }
rxqs > /tmp/before.rxqs
expect 0 nicpin apply nic0 --xps rxqs
equal "xps_rxqs of nic0" "1 2 4 8" "$(cat /sys/class/net/nic0/queues/tx-*/xps_rxqs | sed 's/^0*//' | tr '\n' ' ' | sed 's/ $//')"
expect 0 nicpin check --exact nic0 --xps rxqs
echo 0 > /sys/class/net/nic0/queues/tx-1/xps_rxqs
expect 2 nicpin check --exact -v nic0 --xps rxqs
contains "what check names" "tx-1 xps_rxqs" "$OUT"
expect 0 nicpin restore
rxqs > /tmp/now; same_file "XPS of nic0 after restore" /tmp/before.rxqs /tmp/now

# ------------------------------------------------------------ flows, one at a time
FLOW=100 # packets
modprobe pktgen
MAC=$(cat /sys/class/net/nic1/address)
ethtool -X nic1 default
wire_up nic1 10.9.0.1 nic7 10.9.0.2

received() { ethtool -S nic1 | sed -n 's/^ *rx_queue_\([0-9]*\)_packets: \([0-9]*\)$/\1 \2/p'; }
settled() { received > /tmp/is; usleep 20000; received | cmp -s - /tmp/is; }
# sent N: packets from nic7 to nic1 with a source address of their own
sent() {
  local thread=/proc/net/pktgen/kpktgend_0 line from
  from=10.$(($1 * 29 % 251 + 1)).$(($1 * 53 % 251 + 1)).$(($1 * 97 % 251 + 1))
  {
    echo "echo rem_device_all > $thread; echo add_device nic7 > $thread"
    for line in "count $FLOW" "delay 400000" "dst_mac $MAC" "dst 10.9.0.200" "src_min $from" "src_max $from"; do
      echo "echo $line > /proc/net/pktgen/nic7"
    done
    echo "echo start > /proc/net/pktgen/pgctrl; echo rem_device_all > $thread"
  } > /tmp/pktgen
  in_ns sh /tmp/pktgen
}
# flows: prints the queue of each flow, by its packets
flows() {
  local n
  for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
    received > /tmp/was
    sent $n
    poll 5 settled
    awk -v flow=$FLOW 'NR == FNR {was[$1] = $2; next} $2 - was[$1] >= flow / 2 {print $1}' /tmp/was /tmp/is
  done
}
flows > /tmp/flows.before
equal "flows that were counted" 12 "$(wc -l < /tmp/flows.before)"
at_least "queues that flows reach by the default table" 3 "$(sort -u /tmp/flows.before | wc -l)"
expect 0 nicpin apply nic1 --rss 2
flows > /tmp/flows.two
equal "flows that were counted with --rss 2" 12 "$(wc -l < /tmp/flows.two)"
equal "queues that they reached" "0 1 " "$(sort -u /tmp/flows.two | tr '\n' ' ')"
expect 0 nicpin restore
flows > /tmp/flows.after
same_file "the queue of each flow after restore" /tmp/flows.before /tmp/flows.after
echo "queues of 12 flows: by default $(tr '\n' ' ' < /tmp/flows.before); with --rss 2 $(tr '\n' ' ' < /tmp/flows.two)"
wire_down nic1 nic7 10.9.0.1
finish
