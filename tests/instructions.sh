#!/bin/bash
# instructions.sh - whether reading a machine, the parser of /proc/interrupts and the planner still take about as many
# instructions as they did, as callgrind counts them, and `plan` about as many system calls for each file, as strace
# counts them. Times vary from machine to machine; these do not.
#
# What a turn takes is half of what three turns take more than one, so that all around it does not count. More than
# half as much again as benches/instructions says fails; so does less than half of that, since the guard would then
# watch over nothing: write the new number down.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
EXPECTED=benches/instructions

BENCH=$(cargo bench --bench speed --locked --no-run --message-format=json-render-diagnostics |
  sed -n 's/.*"executable":"\([^"]*\/speed-[^"]*\)".*/\1/p' | tail -n 1)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# counted WHAT TURNS
counted() {
  valgrind --tool=callgrind --callgrind-out-file="$WORK/out" "$BENCH" count "$1" "$2" 2>&1 |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

status=0
while read -r what expected; do
  one=$(counted "$what" 1)
  three=$(counted "$what" 3)
  now=$(((three - one) / 2))
  percent=$((100 * now / expected))
  echo "$what: $now instructions, $percent % of $expected"
  if [ "$percent" -gt 150 ] || [ "$percent" -lt 50 ]; then
    echo "  that is another program than the one that was measured: $EXPECTED" >&2
    status=1
  fi
done <"$EXPECTED"

# Four calls for a file: open, stat, read, close
"$BENCH" tree 256 4 4 64 "$WORK/machine"
strace -f -o "$WORK/calls" "${BENCH%/deps/*}/nicpin" --root "$WORK/machine" plan >/dev/null
calls=$(wc -l <"$WORK/calls")
files=$(grep -c 'openat2(.*O_NONBLOCK.* = [0-9]' "$WORK/calls")
echo "plan: $calls system calls for $files files"
if [ "$calls" -gt $((5 * files)) ]; then
  echo "  more than five for each" >&2
  status=1
fi
exit $status
