# shellcheck shell=dash
# Helpers for guest scripts: . /harness/lib.sh

# try_write FILE VALUE: one write(2) of VALUE and a newline; prints "ok" or "ERR" and the kernel's error text (dd
# reports it; the shell's printf does not)
try_write() {
  local e
  if e=$(printf '%s\n' "$2" | dd of="$1" bs=65536 conv=notrunc 2>&1); then echo ok
  else echo "ERR $(echo "$e" | sed -n '/^dd:/{s/.*: //;p;q}')"; fi
}

# as_nobody COMMAND: in a shell of uid 65534 (/tmp is world-writable)
as_nobody() { su -s /bin/sh nobody -c "$*"; }

# poll SECONDS COMMAND...: until COMMAND succeeds, at most so long
poll() {
  local end=$(($(milliseconds) + $1 * 1000)); shift
  until "$@"; do
    [ "$(milliseconds)" -lt "$end" ] || return 1
    usleep 50000
  done
}
milliseconds() { local up rest; read -r up rest < /proc/uptime; echo "${up%.*}${up#*.}0"; }

# pci NIC: the card's PCI function. A virtio card's device link is the virtioN device, which has no numa_node and no
# msi_irqs: the PCI function is its parent. Empty when there is none (virtual device, or moved to another namespace).
pci() {
  local d
  d=$(readlink -f "/sys/class/net/$1/device") || return 1
  while [ -n "$d" ] && ! { [ -e "$d/vendor" ] && [ -e "$d/class" ]; }; do d=${d%/*}; done
  [ -n "$d" ] && echo "$d"
}

# shellcheck disable=SC2012  # numbers
# irqs NIC: its MSI interrupts
irqs() { local d; d=$(pci "$1") && ls "$d/msi_irqs" 2>/dev/null | sort -n; }

# wire_up NIC IP FAR FAR_IP: FAR moves into a network namespace of its own, so that traffic between the two crosses
# the virtual wire. Sets NSPID for in_ns.
wire_up() {
  unshare -n sleep 100000 & NSPID=$!
  poll 10 elsewhere
  ip link set dev "$3" netns "$NSPID"
  ip addr add "$2/24" dev "$1"; ip link set dev "$1" up
  in_ns ip link set dev lo up
  in_ns ip addr add "$4/24" dev "$3"; in_ns ip link set dev "$3" up
  poll 10 ping -q -c 1 -W 1 "$4" >/dev/null
}
elsewhere() { [ "$(readlink "/proc/$NSPID/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
in_ns() { nsenter -t "$NSPID" -n "$@"; }

# wire_down NIC FAR IP: FAR comes back; NIC loses its addresses
wire_down() {
  in_ns ip link set dev "$2" netns 1
  kill "$NSPID"; wait "$NSPID" 2>/dev/null
  ip link set dev "$2" up
  ip addr del "$3/24" dev "$1"   # and with it the others of its network
}
