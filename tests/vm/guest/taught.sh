#!/bin/sh
# shellcheck shell=dash disable=SC1091
# four-node: a card whose names nobody knows is placed as data; its traffic tells a row for the policy, by which its queues
# are known. Rows of the policy come before those of the program, so that one of them makes igb unknown.
. /harness/lib.sh
. /payload/assert.sh

P=/tmp/plan.json
expect 0 nicpin plan --format json; cp "$OUT" $P
vectors $P | awk '$2 == "nic1" {print $1, $3, $4}' | sort > /tmp/known
at_least "queues of nic1" 4 "$(wc -l < /tmp/known)"
expect 0 nicpin apply nic1   # XPS: each CPU sends on the queue of its number in the plan
cat > /etc/nicpin.toml <<'EOF'
[[driver]]
name = "igb"
irqs = ["{if}-TxRx-{x} = data"]
EOF

echo "--- placed as data"
expect 0 nicpin plan --format json nic1; cp "$OUT" /tmp/data.json
equal "roles" "data" "$(vectors /tmp/data.json | cut -d' ' -f3 | sort -u)"
equal "queue numbers that are made up" "" "$(vectors /tmp/data.json | awk '$4 != "-"')"
equal "IRQs" "$(cut -d' ' -f1 /tmp/known)" "$(vectors /tmp/data.json | cut -d' ' -f1 | sort)"
contains "the row that told it" '"row": "{if}-TxRx-{x} = data (policy)"' /tmp/data.json
expect 0 nicpin apply nic1
expect 0 nicpin check nic1

echo "--- traffic tells a row"
connect nic1:nic7 $P
# Nobody answers what is sent to all hosts, so that a queue has packets by itself. The cards hash addresses.
for n in 50 51 52 53 54 55 56 57 58 59 60 61; do in_ns ip addr add "10.9.0.$n/24" dev nic7; done
# shellcheck disable=SC2086
cat > /tmp/send <<EOF
for cpu in $(printf '%s ' $NEAR_CPUS); do taskset -c \$cpu ping -q -c 25 -i 0.02 -W 1 -I 10.9.0.1 224.0.0.1; done
for n in 50 51 52 53 54 55 56 57 58 59 60 61; do
  nsenter -t $NSPID -n ping -q -c 25 -i 0.02 -W 1 -I 10.9.0.\$n 224.0.0.1
done
exit 0
EOF
expect 0 nicpin measure --format json nic1 -- sh -c 'sh /tmp/send > /dev/null'
contains "the row" '"learned":{"name":"igb","irqs":["{if}-TxRx-{n} = combined"]}' "$OUT"
contains "queues that moved" '"moved_with":["rx ' "$OUT"
expect 0 nicpin measure nic1 -- sh -c 'sh /tmp/send > /dev/null'
sed -n '/\[\[driver\]\]/,/^ *\]/p' "$OUT" > /tmp/row
disconnect

echo "--- read as queues"
cat /tmp/row; cp /tmp/row /etc/nicpin.toml
expect 0 nicpin plan --format json nic1
contains "the row that told it" '"row": "{if}-TxRx-{n} = combined (policy)"' "$OUT"
vectors "$OUT" | awk '{print $1, $3, $4}' | sort > /tmp/taught
same_file "queues" /tmp/known /tmp/taught

echo "--- and undone, whatever was taught in between"
expect 0 nicpin apply nic1
rm /etc/nicpin.toml
expect 0 nicpin restore
equal "a record" "" "$(ls /run/nicpin/state.json 2>/dev/null)"
finish
