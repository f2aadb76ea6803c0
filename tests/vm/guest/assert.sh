# shellcheck shell=dash
# What the guest tests share: assertions that count, nicpin's outcomes, snapshots of the machine, the plan's content
# and traffic that reaches every queue. Sourced after /harness/lib.sh.

export PATH=/payload:$PATH
CHECKS=0 FAILED=0

failed() { FAILED=$((FAILED + 1)); echo "FAIL: $1"; }

equal() { # WHAT EXPECTED GOT
  CHECKS=$((CHECKS + 1))
  [ "$2" = "$3" ] || { failed "$1"; echo "  expected: $2"; echo "  got:      $3"; }
}

# Prints the name of a file with the last output without line breaks.
in_one_line() { tr -s ' \n' ' ' < "$OUT" > /tmp/line; echo /tmp/line; }
contains() { # WHAT TEXT FILE
  CHECKS=$((CHECKS + 1))
  grep -qF -e "$2" "$3" || { failed "$1"; echo "  expected to find: $2"; echo "  got:"; sed 's/^/    /' "$3"; }
}

same_file() { # WHAT EXPECTED_FILE GOT_FILE
  CHECKS=$((CHECKS + 1))
  cmp -s "$2" "$3" || { failed "$1"; echo "  expected (-), got (+):"; diff -U 0 "$2" "$3" | sed 's/^/    /'; }
}

at_least() { # WHAT MINIMUM GOT
  CHECKS=$((CHECKS + 1))
  [ "$3" -ge "$2" ] || { failed "$1"; echo "  expected: $2 or more"; echo "  got:      $3"; }
}

holds() { # WHAT COMMAND...
  CHECKS=$((CHECKS + 1))
  local what=$1; shift
  "$@" || failed "$what ($* gives status $?)"
}

# expect STATUS COMMAND...: its output goes to $OUT and $ERR
OUT=/tmp/stdout ERR=/tmp/stderr
expect() {
  local status=$1 got; shift
  "$@" >"$OUT" 2>"$ERR"; got=$?
  CHECKS=$((CHECKS + 1))
  [ $got = "$status" ] || {
    failed "status of: $*"; echo "  expected: $status"; echo "  got:      $got"; sed 's/^/    /' "$OUT" "$ERR"
  }
}

one_line() { # FILE: nothing but one line
  equal "number of lines in: $(cat "$1")" 1 "$(wc -l < "$1")"
}

finish() {
  echo "$CHECKS checks, $FAILED failed"
  [ $FAILED = 0 ] && [ $CHECKS -gt 0 ]
  exit
}

# A plan tells the states of links, which come up one by one.
links_up() { ! grep -qs down /sys/class/net/[en]*/operstate; }
poll 10 links_up

# snapshot FILE: every value that nicpin may write, and those of all other interrupts, as PATH:TEXT lines
snapshot() {
  grep -sH '' /proc/irq/[0-9]*/smp_affinity /sys/class/net/*/queues/rx-*/rps_* \
    /sys/class/net/*/queues/tx-*/xps_cpus /proc/sys/net/core/rps_sock_flow_entries > "$1"
}

# number NAME: a count of the last line of apply's and restore's table
number() { sed -n "\$s/.*\b$1=\([0-9]*\).*/\1/p" "$OUT"; }

# writes SH_PLAN: "PATH VALUE" of each write
writes() { sed -n 's/^echo \([^ ]*\) > \([^ ]*\)  #.*/\2 \1/p' "$1"; }

# as_planned SH_PLAN: every file holds the plan's value
as_planned() {
  local path value
  writes "$1" > /tmp/writes
  at_least "writes in $1" 1 "$(wc -l < /tmp/writes)"
  while read -r path value; do equal "$path" "$value" "$(setting "$path")"; done < /tmp/writes
}

# setting FILE: its text; read again if the kernel allows a vector nowhere, as it does for a moment during a pending
# move
setting() {
  local text tries=5
  while text=$(cat "$1") && tries=$((tries - 1)); do
    case $tries:$1:$text in 0:*|*:*/smp_affinity:*[1-9a-f]*) break;; *:*/smp_affinity:*) ;; *) break;; esac
  done
  echo "$text"
}

# vectors JSON_PLAN: "IRQ INTERFACE ROLE QUEUE CPU" of each vector that is placed
vectors() {
  awk -F'"' '
    /^ *"name":/ {nic = $4}
    /^ *"irq":/ {irq = $3; gsub(/[^0-9]/, "", irq); cpus = ""; queue = "-"}
    /^ *"role":/ {role = $4}
    /^ *"queue": [0-9]/ {queue = $3; gsub(/[^0-9]/, "", queue)}
    /^ *"cpus":/ {cpus = $4}
    /^ *}/ {if (irq != "" && cpus != "") print irq, nic, role, queue, cpus; irq = ""}' "$1"
}

# steering JSON_PLAN rps|xps: "INTERFACE QUEUE CPUS" of each queue that is steered
steering() {
  awk -F'"' -v key="$2_cpus" '
    /^ *"name":/ {nic = $4}
    /^ *"queue": [0-9]/ {queue = $3; gsub(/[^0-9]/, "", queue)}
    $2 == key && $4 != "" {print nic, queue, $4}' "$1"
}

# first_cpus JSON_PLAN INTERFACE: a CPU for each of its transmit queues that sends on that queue; with a single queue,
# CPUs of a few flows
first_cpus() {
  steering "$1" xps | awk -v nic="$2" '$1 == nic {sub(/[-,].*/, "", $3); print $3; n++} END {if (!n) print "0 1 2 3"}'
}

# unsettled JSON_PLAN [INTERFACE...]: placed vectors (of these interfaces) that are not yet served where they are
# planned; success if there are none
unsettled() {
  local irq nic role queue cpu now plan=$1 left=1; shift
  vectors "$plan" > /tmp/vectors
  while read -r irq nic role queue cpu; do
    case " ${*:-$nic} " in *" $nic "*) ;; *) continue;; esac
    read -r now < "/proc/irq/$irq/effective_affinity_list"
    [ "$now" = "$cpu" ] || { left=0; echo "irq $irq ($nic $role $queue): planned $cpu, effective $now"; }
  done < /tmp/vectors
  return $left
}

# pairs: cards of this topology that share a wire, the near one first
pairs() {
  case $TOPOLOGY in
    four-node) echo "nic0:nic5 nic1:nic7 nic2:nic4 nic3:nic6";;
    wide) echo "nic0:nic1 nic2:nic3";;
    irregular) echo "nic0:nic2 nic1:nic3";;
    *) echo "nic0:nic1";;
  esac
}

# connect PAIR JSON_PLAN: makes the wire between two cards, and lists the CPUs from which each reaches all of its queues
connect() {
  NEAR=${1%:*} FAR=${1#*:}
  NEAR_CPUS=$(first_cpus "$2" "$NEAR") FAR_CPUS=$(first_cpus "$2" "$FAR")
  holds "$NEAR and $FAR reach each other" wire_up "$NEAR" 10.9.0.1 "$FAR" 10.9.0.2
}
disconnect() { wire_down "$NEAR" "$FAR" 10.9.0.1; }

# talk COUNT: COUNT packets from each of these CPUs cross the wire in both directions, each CPU with an address of its
# own. Answers to a virtio card come back to the queue of the question, since QEMU's taps remember flows; an igb hashes
# addresses.
talk() {
  local cpu n=10 pids=''
  for cpu in $NEAR_CPUS; do
    ip addr add "10.9.0.$n/24" dev "$NEAR" 2>/dev/null
    taskset -c "$cpu" ping -q -c "$1" -i 0.02 -W 1 -I "10.9.0.$n" 10.9.0.2 >/dev/null & pids="$pids $!"
    n=$((n + 1))
  done
  for cpu in $FAR_CPUS; do
    in_ns ip addr add "10.9.0.$n/24" dev "$FAR" 2>/dev/null
    in_ns taskset -c "$cpu" ping -q -c "$1" -i 0.02 -W 1 -I "10.9.0.$n" 10.9.0.1 >/dev/null & pids="$pids $!"
    n=$((n + 1))
  done
  # shellcheck disable=SC2086
  wait $pids
}

# settle JSON_PLAN: traffic until both cards' vectors are served where they are planned. Without interrupt remapping a
# vector moves at its next interrupt.
settle() {
  local rounds=0 left
  while talk 3; left=$(unsettled "$1" "$NEAR" "$FAR"); do
    rounds=$((rounds + 1)); [ $rounds -lt 10 ] || break
  done
  equal "vectors of $NEAR and $FAR with other effective CPUs after traffic" "" "$left"
}
