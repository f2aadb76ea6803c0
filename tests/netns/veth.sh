#!/bin/bash
# veth.sh - runs in a user, network and mount namespace of its own, where it is root; run.sh starts it. Figures are
# checked against the kernel's counters as this script reads them itself.
set -u
mount -t sysfs sysfs /sys || exit 1
nicpin() { "$NICPIN" "$@"; }
CHECKS=0 FAILED=0 OUT=$SCRATCH/out ERR=$SCRATCH/err

failed() { FAILED=$((FAILED + 1)); echo "FAIL: $1"; sed 's/^/    /' "$OUT" "$ERR"; }
equal() { CHECKS=$((CHECKS + 1)); [ "$2" = "$3" ] || { failed "$1"; echo "  expected: $2"; echo "  got:      $3"; }; }
has() { CHECKS=$((CHECKS + 1)); grep -qF -e "$2" "$3" || { failed "$1"; echo "  expected to find: $2"; }; }
expect() { # STATUS COMMAND...
  local status=$1 got; shift
  "$@" > "$OUT" 2> "$ERR"; got=$?
  CHECKS=$((CHECKS + 1))
  [ $got = "$status" ] || { failed "status of: $*"; echo "  expected: $status"; echo "  got:      $got"; }
}
# number KEY: prints the first value of that key in a line of JSON
number() { tr ',{}[]' '\n' < "$OUT" | sed -n "s/^ *\"$1\": *//p" | sed 1q; }
counter() { cat "/sys/class/net/$1/statistics/$2"; }

# --- a pair with its other end in another namespace, so that packets cross it; nobody answers at 10.9.0.3
ip link set dev lo up
ip link add veth0 type veth peer name veth1
unshare -n sleep 1000 & other=$!
trap 'kill $other' EXIT
while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do :; done
address=$(cat /sys/class/net/veth1/address)
ip link set dev veth1 netns $other
# Without router solicitations, which would be counted, too
sysctl -qw net.ipv6.conf.veth0.disable_ipv6=1 2>/dev/null
ip addr add 10.9.0.1/24 dev veth0; ip link set dev veth0 up
nsenter -t $other -n ip link set dev veth1 up
ip neigh add 10.9.0.3 lladdr "$address" dev veth0 nud permanent

# send COUNT: sends so many packets of 1000 bytes
cat > "$SCRATCH/send" <<'SEND'
#!/bin/bash
packet=$(printf '%1000s' x)
exec 3> /dev/udp/10.9.0.3/9
for ((n = 0; n < $1; n++)); do printf '%s' "$packet" >&3; done
SEND
chmod 755 "$SCRATCH/send"

# --- measure
before=$(counter veth0 tx_bytes)
expect 0 nicpin measure --format json veth0 -- "$SCRATCH/send" 500
equal "bytes sent" $(($(counter veth0 tx_bytes) - before)) "$(number tx_bytes)"
equal "bytes of 500 packets" $((500 * 1042)) "$(number tx_bytes)"
equal "the schema" '"nicpin.measure/1"' "$(number schema)"
has "what it is" '"kind":"a veth or a tunnel","node":null' "$OUT"
CHECKS=$((CHECKS + 1))
awk -v rate="$(number tx_packets_per_second)" -v time="$(number seconds)" \
  'BEGIN {n = rate * time; exit !(n > 499.5 && n < 500.5)}' || failed "packets a second times seconds are 500"

expect 0 nicpin measure veth0 -- "$SCRATCH/send" 300
has "the table" "veth0      -      0         0" "$OUT"
expect 3 nicpin measure veth0 -- sh -c 'exit 3'
has "the command's failure" "nicpin: sh: exit status: 3" "$ERR"
has "what was measured all the same" "veth0      -" "$OUT"

# A note says that the CPUs' figures include loopback's packets.
ip link set dev lo up
expect 0 nicpin measure veth0 -- bash -c 'exec 3> /dev/udp/127.0.0.1/9; for n in 1 2 3 4 5 6 7 8 9; do echo x >&3; done 2> /dev/null; true'
has "loopback" "/s of the loopback interface." "$OUT"

# A line each tenth of a second while the command runs, and one for the whole run; the lines add up.
before=$(counter veth0 tx_bytes)
expect 0 nicpin measure --seconds 0.1 --format json veth0 -- sh -c "for i in 1 2 3 4; do $SCRATCH/send 100; sleep 0.1; done"
CHECKS=$((CHECKS + 1))
[ "$(wc -l < "$OUT")" -ge 3 ] || failed "a line each tenth of a second"
equal "lines of the whole" 1 "$(grep -c '"whole":true' "$OUT")"
equal "bytes of the whole" $(($(counter veth0 tx_bytes) - before)) "$(tail -1 "$OUT" | grep -o '"tx_bytes":[0-9]*' | cut -d: -f2)"

# --- an interface that goes away while it is measured
ip link add veth8 type veth peer name veth9
expect 0 nicpin measure --format json veth8 -- ip link del veth8
has "the interface that went" '"code":"interfaces-changed"' "$OUT"
has "no figures of it" '"traffic":null' "$OUT"

# --- nobody reads on
CHECKS=$((CHECKS + 1))
nicpin measure --watch --seconds 0.05 --format json veth0 2> "$ERR" | head -2 > "$OUT"
[ "${PIPESTATUS[0]}" = 0 ] || failed "a closed pipe is no error (${PIPESTATUS[0]})"
equal "samples that were read" 2 "$(wc -l < "$OUT")"

# --- on a terminal: progress, and samples one over the other
if command -v script >/dev/null; then
  expect 0 script -qec "$NICPIN measure --watch --count 2 --seconds 0.1 veth0" /dev/null
  has "progress" "watching interrupts, 1 s left" "$OUT"
  equal "samples drawn from the top" 2 "$(grep -o $'\x1b\[H' "$OUT" | wc -l)"
else
  echo "not tested: the terminal, since script is not here"
fi

# --- compare
expect 1 nicpin compare veth0 -- true
has "a veth has no node" "is a veth or a tunnel and has no node" "$ERR"
expect 0 nicpin compare --runs 2 --warmup 0 --near 0 --far 0 --format json veth0 -- "$SCRATCH/send" 200
equal "runs" 4 "$(grep -c '"wall_seconds":' "$OUT")"
for key in wall_seconds cpu_seconds gbit_per_second; do
  CHECKS=$((CHECKS + 1))
  awk -v v="$(number $key)" 'BEGIN {exit !(v > 0)}' || failed "$key is more than nothing: $(number $key)"
done
has "the same node" '"code": "same-node"' "$OUT"
expect 1 nicpin compare --near 0 --far 0 veth0 -- sh -c 'exit 3'
has "which run failed" "nicpin: near, warm-up 1 of 1: sh: exit status: 3" "$ERR"
expect 0 nicpin compare --runs 1 --warmup 0 --near 0 --far 0 veth0 -- grep Cpus_allowed_list /proc/self/status
equal "CPUs of the command, as it says" "$(sed -n 's/^  near  node 0  CPUs //p' "$OUT")" \
  "$(sed -n '1s/^Cpus_allowed_list:\t//p' "$ERR")"

# After SIGTERM the report has the runs that ended.
"$NICPIN" compare --runs 1000 --warmup 0 --near 0 --far 0 veth0 -- echo ended > "$OUT" 2> "$ERR" & compare=$!
until [ "$(grep -c ended "$ERR")" -ge 5 ]; do sleep 0.02; done
kill -TERM $compare
CHECKS=$((CHECKS + 1))
wait $compare && failed "an interrupted comparison is complete"
has "the runs that ended" " runs" "$OUT"
has "why it ended" "far of 1000 runs each" "$ERR"

# --- export
rm -f "$SCRATCH/table.md" "$SCRATCH/runs.json"
expect 0 nicpin compare --runs 3 --near 0 --far 0 --export-json "$SCRATCH/runs.json" \
  --export-markdown "$SCRATCH/table.md" veth0 -- true
has "what is exported" '"schema": "nicpin.compare/1"' "$SCRATCH/runs.json"
has "the table" '| wall s | near |' "$SCRATCH/table.md"
expect 1 nicpin compare --near 0 --far 0 --export-json "$SCRATCH/runs.json" veth0 -- false
has "no run before the file is known to be new" "runs.json: file exists; fix: use --force" "$ERR"

echo "$CHECKS checks, $FAILED failed"
[ $FAILED = 0 ]
