# shellcheck shell=dash disable=SC2086
# What the tests of nicpin-watch.service share. Sourced after assert.sh.

STATE=/run/nicpin/watch.json
UNIT=nicpin-watch.service
# Milliseconds until the plan is back, under emulation. A debug build, which is larger, may take longer.
LIMIT=2000
[ "$(stat -c %s /usr/bin/nicpin)" -lt 12000000 ] || LIMIT=20000
# `brief`: other machines are emulated beside this one.
[ -z "${1:-}" ] || LIMIT=$((4 * LIMIT))

runs() { sed -n 's/^  "count": \([0-9]*\),$/\1/p' $STATE 2>/dev/null; }
more_runs() { [ "$(runs)" -gt "$1" ] 2>/dev/null; }
watcher_pid() { systemctl show $UNIT --property=MainPID --value; }
wakeups() { sed -n 's/^voluntary_ctxt_switches:\t//p' "/proc/$(watcher_pid)/status"; }
as_before() { nicpin check --exact --quiet; }
quiet() { # no run for a while, and none at work
  local before; before=$(runs); sleep 1
  [ "$(runs)" = "$before" ] && [ -z "$(pgrep --parent "$(watcher_pid)")" ]
}

section() { echo "--- $1"; }
journal() { journalctl --unit $UNIT --boot --output cat; }

# fresh: a new watcher with an unused budget of CPU time
fresh() {
  systemctl reset-failed $UNIT 2>/dev/null
  systemctl restart $UNIT
  poll 20 more_runs 0
  poll 20 quiet
}

# corrected WHAT COMMAND...: the plan is back after the command; prints how long that took
corrected() {
  local what=$1 before began took; shift
  before=$(runs) began=$(milliseconds)
  "$@" > /tmp/corrected 2>&1 || { failed "$what: $* gives status $?"; cat /tmp/corrected; }
  local ended; ended=$(milliseconds)
  CHECKS=$((CHECKS + 1))
  poll 30 more_runs "$before" || { failed "$what: no run"; return; }
  took=$(($(milliseconds) - ended))
  # A second run may follow, for events during the first; each check takes time from it.
  until as_before; do
    sleep 0.1
    [ $(($(milliseconds) - began)) -lt 40000 ] || { failed "$what: not as planned again"; nicpin check --exact; return; }
    took=$(($(milliseconds) - ended))
  done
  printf '%-34s plan back after %5d ms, run %d; %s\n' "$what" "$took" "$(runs)" "$(last_event)"
  [ "$took" -le "$LIMIT" ] || failed "$what: the plan is back after $took ms, more than $LIMIT"
  poll 20 quiet
}
last_event() { sed -n 's/^      "event": "\(.*\)",$/\1/p' $STATE | head -1; }

# is_open NIC: udev has named it and networkd has opened it; before that it has no vectors.
is_open() { [ $(($(cat "/sys/class/net/$1/flags" 2>/dev/null || echo 0) & 1)) = 1 ]; }
# rebind NIC: the driver gives it up and takes it back; waits until it is open again
rebind() {
  local device driver
  device=$(readlink -f "/sys/class/net/$1/device") driver=$(readlink -f "$device/driver")
  echo "${device##*/}" > "$driver/unbind"; echo "${device##*/}" > "$driver/bind"
  poll 10 is_open "$1"
}
cpu3() { echo "$1" > /sys/devices/system/cpu/cpu3/online; }
suspend() { # and resume
  echo core > /sys/power/pm_test; echo mem > /sys/power/state; echo none > /sys/power/pm_test
}

# guarded OPTIONS...: a new watcher with these options
guarded() {
  mkdir -p /run/systemd/system/$UNIT.d
  printf '[Service]\nExecStart=\nExecStart=/usr/bin/nicpin watch %s\n' "$*" > /run/systemd/system/$UNIT.d/options.conf
  systemctl daemon-reload
  fresh
}
unguarded() { rm -r /run/systemd/system/$UNIT.d; systemctl daemon-reload; }

# spoil NIC: moves all of its vectors to the other node
spoil() {
  local irq to
  for irq in $(irqs "$1"); do
    case $(cat "/proc/irq/$irq/smp_affinity_list") in [23]*) to=0;; *) to=3;; esac
    echo $to > "/proc/irq/$irq/smp_affinity_list" 2>/dev/null
  done
  true
}
