#!/bin/sh
# shellcheck shell=dash disable=SC1091
# two-node with Debian's irqbalance, really running: what was applied holds when irqbalance was asked to ban the IRQs, and moves when it was not.
. /harness/lib.sh
. /payload/assert.sh

SECONDS_HELD=${1:-30}
mkdir -p /run/irqbalance /usr/lib/nicpin
cp /payload/nicpin /usr/bin/
cp /payload/nicpin-irqbalance-policy /usr/lib/nicpin/
irqbalance --version 2>&1

# balance ARGUMENT...: starts irqbalance as its service does, to look at the machine every second
balance() {
  irqbalance --foreground --interval=1 "$@" >/tmp/irqbalance.log 2>&1 & BALANCE=$!
  poll 10 answers
}
stop_balance() { kill "$BALANCE" 2>/dev/null; wait "$BALANCE" 2>/dev/null; }
ask() { printf '%s' "$1" | timeout 20 nc.openbsd -N -U "/run/irqbalance/irqbalance$BALANCE.sock"; }
answers() { ask setup 2>/dev/null | grep -q SLEEP; }
# left_alone: the IRQs that irqbalance says it leaves alone
left_alone() { ask setup | tr ' ' '\n' | sed -n '/^IRQ$/{n;p}' | sort -n; }


# The far card goes to another network namespace and is not planned from here on.
expect 0 nicpin plan --format json; cp "$OUT" /tmp/plan.json
connect nic0:nic1 /tmp/plan.json
printf '[[rule]]\nmatch = { name = "0000:*" }\nset = { skip = true }\n' > /etc/nicpin.toml
expect 0 nicpin plan --format sh; cp "$OUT" /tmp/plan.sh
writes /tmp/plan.sh | grep /proc/irq | sort > /tmp/planned
expect 0 nicpin plan --format json; cp "$OUT" /tmp/plan.json
vectors /tmp/plan.json | cut -d' ' -f1 | sort -n > /tmp/irqs
N=$(wc -l < /tmp/irqs)
FIRST=$(sed -n 1p /tmp/irqs) LAST=$(sed -n '$p' /tmp/irqs)

# values: PATH VALUE of every planned vector as it is now
values() { while read -r path _; do echo "$path $(cat "$path")"; done < /tmp/planned; }
moved() { values > /tmp/values; ! cmp -s /tmp/planned /tmp/values; }
# stir: at SIGHUP irqbalance looks for devices anew and places every IRQ that it has
stir() { kill -HUP "$BALANCE"; sleep 1; moved; }

# holds_on WHAT SECONDS: every planned vector stays while irqbalance is stirred and packets cross the wire
holds_on() {
  local end=$(($(milliseconds) + $2 * 1000)) rounds=0 away=''
  while [ "$(milliseconds)" -lt $end ] && [ -z "$away" ]; do
    talk 5; kill -HUP "$BALANCE"; sleep 1
    moved && away=$(diff -U 0 /tmp/planned /tmp/values)
    rounds=$((rounds + 1))
  done
  equal "vectors that moved: $1" "" "$away"
  holds "irqbalance still runs: $1" kill -0 "$BALANCE"
  echo "$1: held for $2 s in $rounds rounds"
}

# --- without a ban: it moves them
balance
expect 0 nicpin apply --irqbalance ignore
contains "what ignore says" "the policy ignores it" "$OUT"
equal "IRQs left alone after ignore" "" "$(left_alone)"
holds "irqbalance moves what it has no ban for" poll 60 stir
diff -U 0 /tmp/planned /tmp/values | sed -n 's/^+\//  moved: \//p' | head -4
expect 2 nicpin check --exact

# --- refused: nothing is written
snapshot /tmp/before
expect 1 nicpin apply --irqbalance refuse
one_line "$ERR"
snapshot /tmp/now; same_file "the machine after refuse" /tmp/before /tmp/now
stop_balance

# --- banned: vectors hold, and irqbalance leaves IRQs alone that somebody else had banned
balance --banirq="$FIRST" --banirq=9
expect 1 as_nobody nicpin apply
expect 0 nicpin apply
contains "what apply says" "irqbalance  $N IRQs banned" "$OUT"
contains "how long" "planned IRQs until irqbalance restarts" "$(in_one_line)"
{ echo 9; cat /tmp/irqs; } | sort -n > /tmp/expected; left_alone > /tmp/got
same_file "IRQs that irqbalance says it leaves alone" /tmp/expected /tmp/got
holds_on "ban" "$SECONDS_HELD"
expect 0 nicpin apply
equal "values changed by a second apply" 0 "$(number changed)"
expect 0 nicpin check --exact

# --- restore removes exactly those bans
expect 0 nicpin restore
contains "what restore says" "irqbalance  $((N - 1)) IRQs no longer banned" "$OUT"
equal "IRQs left alone after restore" "9 $FIRST" "$(left_alone | tr '\n' ' ' | sed 's/ $//')"

# --- restarted: irqbalance has no bans, and gets them again; restore removes none from one that got none
expect 0 nicpin apply
stop_balance; balance
equal "IRQs left alone after a restart" "" "$(left_alone)"
expect 0 nicpin apply
same_file "IRQs left alone after another apply" /tmp/irqs - <<END
$(left_alone)
END
stop_balance; balance
ask "settings ban irqs $LAST"
expect 0 nicpin restore
equal "IRQs left alone after a restore" "$LAST" "$(left_alone)"
stop_balance

# --- more IRQs than irqbalance reads at once: reported, and the list is as before
set --; n=200; while [ $n -lt 330 ]; do set -- "$@" --banirq=$n; n=$((n + 1)); done
balance "$@"
left_alone > /tmp/expected
if [ "$(irqbalance --version 2>&1 | sed 's/.* 1\.9\.\([0-9]\).*/\1/')" -le 4 ]; then
  expect 1 nicpin apply
  contains "what apply says of too long a list" "cannot read a request with" "$(in_one_line)"
  left_alone > /tmp/got; same_file "the list that was too long to change" /tmp/expected /tmp/got
  expect 0 nicpin restore
fi
stop_balance

# --- its policy script asks nicpin: vectors hold over a restart, and without a socket
expect 0 nicpin apply --irqbalance ignore
balance --policyscript=/usr/lib/nicpin/nicpin-irqbalance-policy
holds_on "policy script" 8
stop_balance
mkdir /tmp/policies; cp /usr/lib/nicpin/nicpin-irqbalance-policy /tmp/policies/
balance --policyscript=/tmp/policies
holds_on "directory of policy scripts" 8
while read -r irq; do
  expect 0 as_nobody nicpin irqbalance-policy /sys "$irq"
  equal "policy for IRQ $irq" ban=true "$(cat "$OUT")"
done < /tmp/irqs
control=$(irqs nic0 | head -1)
expect 0 as_nobody nicpin irqbalance-policy "$(pci nic0)" "$control"
equal "policy for the control vector, IRQ $control" "" "$(cat "$OUT")"
stop_balance
expect 0 nicpin restore

# --- without /run/irqbalance it has an abstract socket
rm -r /run/irqbalance
irqbalance --foreground --interval=1 >/tmp/irqbalance.log 2>&1 & BALANCE=$!
listens() { grep -q ' @' /proc/net/unix; }
holds "an abstract socket" poll 10 listens
expect 0 nicpin apply
contains "what apply says over an abstract socket" "irqbalance  $N IRQs banned" "$OUT"
holds_on "abstract socket" 5
expect 0 nicpin restore
contains "what restore says over an abstract socket" "irqbalance  $N IRQs no longer banned" "$OUT"

# --- stop and start: systemctl is found at its own place, whatever the environment says
cat > /usr/bin/systemctl <<'END'
#!/bin/sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
echo "$@" >> /tmp/systemctl.log
case $1 in
  is-active) [ ! -e /tmp/inactive ];;
  stop) [ -e /tmp/inactive ] || { kill "$(pidof irqbalance)"; while pidof irqbalance; do usleep 50000; done; };;
  start) setsid irqbalance --foreground --interval=1 </dev/null >/dev/null 2>&1 &;;
esac
END
chmod 755 /usr/bin/systemctl
mkdir /tmp/bin; printf '#!/bin/sh\necho wrong > /tmp/wrong\n' > /tmp/bin/systemctl; chmod 755 /tmp/bin/systemctl
expect 0 env PATH="/tmp/bin:$PATH" nicpin apply --irqbalance stop
contains "what stop says" "irqbalance  stopped" "$OUT"
wait "$BALANCE" 2>/dev/null
equal "irqbalance after stop" "" "$(pidof irqbalance)"
expect 0 nicpin apply --irqbalance stop
expect 0 nicpin restore
contains "what restore says after stop" "irqbalance  started again" "$OUT"
runs() { pidof irqbalance >/dev/null; }
holds "irqbalance after restore" poll 5 runs
equal "the calls of systemctl" "is-active irqbalance.service stop irqbalance.service start --no-block irqbalance.service" "$(tr '\n' ' ' < /tmp/systemctl.log | sed 's/ $//')"
holds "no other systemctl was run" [ ! -e /tmp/wrong ]
expect 0 nicpin restore --json
contains "a second restore" '"results": []' "$OUT"
touch /tmp/inactive
expect 1 nicpin apply --irqbalance stop
contains "an irqbalance that its unit has not started" "still runs; stop it by hand" "$OUT"
expect 0 nicpin restore
equal "how often the unit was started" 1 "$(grep -c ^start /tmp/systemctl.log)"
kill "$(pidof irqbalance)"
disconnect
finish
