#!/bin/sh
# shellcheck shell=dash disable=SC1091
# flow: random flows, IPv4 and IPv6, TCP and UDP, arrive on the queue and CPU that `nicpin flow` names, or it says what
# cannot be known. Needs ethtool and Python.
. /harness/lib.sh
. /payload/assert.sh
flows=${1:-2500}
part=$((flows / 5))
key=01:23:45:67:89:ab:cd:ef:01:23:45:67:89:ab:cd:ef:01:23:45:67:89:ab:cd:ef:01:23:45:67:89:ab:cd:ef:01:23:45:67:89:ab:cd:ef
export PATH=$PATH:/usr/bin:/usr/sbin
python=$(command -v python3.11 || command -v python3)
uname -r
modprobe tcp_diag; modprobe udp_diag   # busybox does not know them by the alias that the kernel asks for

far() { # NIC FAR: the far end of NIC in a namespace of its own, quiet
  unshare -n sleep 100000 & NSPID=$!
  poll 10 elsewhere
  ip link set dev "$2" netns "$NSPID"
  in_ns sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
  in_ns ip link set dev "$2" up
  in_ns ip addr add 10.8.0.2/24 dev "$2"
  ip addr add 10.8.0.1/24 dev "$1"; ip link set dev "$1" up
  sleep 2
}
away() { kill "$NSPID"; ip addr del 10.8.0.1/24 dev "$1"; }
sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1

# judged WHAT: no line of flow.py has a wrong or a lost flow
judged() {
  cat /tmp/said
  equal "flows of $1 that arrived elsewhere" 0 "$(awk '{for (i = 2; i <= NF; i++) if ($i == "wrong,") n += $(i - 1)} END {print n + 0}' /tmp/said)"
  equal "flows of $1 that did not arrive" 0 "$(awk '{for (i = 2; i <= NF; i++) if ($i == "lost,") n += $(i - 1)} END {print n + 0}' /tmp/said)"
}
run() { $python /payload/flow.py "$@" > /tmp/said 2>&1 || { cat /tmp/said; equal "exit status of flow.py" 0 1; }; }

for pair in ${2:-nic0:nic1 nic2:nic3 nic4:nic5}; do
  nic=${pair%:*} other=${pair#*:}
  far "$nic" "$other"
  expect 0 nicpin apply "$nic"
  ethtool -x "$nic" | head -4
  nicpin flow "$nic" 10.0.0.1:5201 10.0.0.2:40001; nicpin flow "$nic" --udp 10.0.0.1:5201 10.0.0.2:40001
  run check "$nic" "$NSPID" "$other" "$flows"; judged "$nic by queue"
  run cpus "$nic" "$NSPID" "$other" "$part"; judged "$nic by CPU"
  run sockets "$nic" "$NSPID" "$other" 60; judged "$nic by sockets"
  [ "$nic" != nic4 ] || { away "$nic"; continue; }

  expect 0 ethtool -X "$nic" equal 3
  run check "$nic" "$NSPID" "$other" "$part"; judged "$nic with a table of three queues"
  cpu=$(nicpin flow "$nic" 10.0.0.1:5201 10.0.0.2:40001 | sed -n 's/.*, CPU \([0-9]*\).*/\1/p')
  [ -z "$cpu" ] || run ports "$nic" "$NSPID" "$other" "$cpu"; judged "$nic, ports to CPU $cpu"
  ethtool -X "$nic" default
  ethtool -K "$nic" ntuple on >/dev/null 2>&1
  ethtool -N "$nic" flow-type tcp4 dst-port 5201 action 1 loc 0 2>/dev/null
  if ethtool -n "$nic" 2>/dev/null | grep -q '^Filter: 0'; then
    run ports "$nic" "$NSPID" "$other" "$cpu"; judged "$nic with a filter"
    expect 0 ethtool -N "$nic" delete 0
  else
    echo "$nic takes no filter"
  fi
  if ethtool -X "$nic" hkey "$key" 2>/dev/null; then
    run check "$nic" "$NSPID" "$other" "$part"; judged "$nic with another key"
  else
    echo "$nic takes no other key"
  fi
  ethtool -K "$nic" rxhash on 2>/dev/null
  for rx in /sys/class/net/"$nic"/queues/rx-*/rps_cpus; do echo 55 > "$rx"; done
  nicpin flow "$nic" 10.0.0.1:5201 10.0.0.2:40001
  run cpus "$nic" "$NSPID" "$other" "$part"; judged "$nic with RPS"
  run sockets "$nic" "$NSPID" "$other" 60; judged "$nic by sockets with RPS"
  away "$nic"
done
finish
