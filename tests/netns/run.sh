#!/bin/bash
# run.sh - nicpin measure and compare on a veth pair with traffic, and plan under the /sys of another namespace, in
# network namespaces of their own: no root, no virtual machine, and nothing of this machine's network is touched.
#
#   run.sh [-b BINARY]
#
#   -b BINARY   the nicpin to test; default $NICPIN, else target/release/nicpin is built
#
# The last line counts; the exit status is 0 when nothing failed, 77 where no namespace can be made and the tests are
# skipped.
set -u
DIR=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TOP=$(cd "$DIR/../.." && pwd)

BINARY=${NICPIN:-}
while [ $# -gt 0 ]; do
  case $1 in
    -b) BINARY=${2:?-b takes a path}; shift 2;;
    -h|--help) sed -n '2,/^set -u/{/^set -u/d;s/^# \{0,1\}//;p}' "$0"; exit 0;;
    *) echo "run.sh: unknown option $1 (try --help)" >&2; exit 64;;
  esac
done

cannot() {
  for tool in ip unshare nsenter awk; do
    command -v $tool >/dev/null || { echo "$tool is not here (Debian: iproute2, util-linux)"; return; }
  done
  unshare -rnm mount -t sysfs sysfs /sys 2>/dev/null || { echo "no user and network namespace can be made"; return; }
  unshare -rnm ip link add veth0 type veth peer name veth1 2>/dev/null || echo "no veth pair can be made"
}
reason=$(cannot)
if [ -n "$reason" ]; then
  echo "########################################################################"
  echo "##  THE TESTS IN NETWORK NAMESPACES WERE NOT RUN: $reason"
  echo "########################################################################"
  echo "0 passed, 0 failed, 1 skipped"
  exit 77
fi
if [ -z "$BINARY" ]; then
  (cd "$TOP" && cargo build --release --locked --quiet) || exit 1
  BINARY=${CARGO_TARGET_DIR:-$TOP/target}/release/nicpin
fi
[ -x "$BINARY" ] || { echo "run.sh: $BINARY is no program" >&2; exit 1; }
SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/nicpin-netns.XXXXXX") || exit 1
trap 'rm -rf "$SCRATCH"' EXIT
export NICPIN SCRATCH
NICPIN=$(readlink -f "$BINARY")
passed=0 failed=0 skipped=0
count() { if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }
count unshare -rnm bash "$DIR/veth.sh"
devices=(/sys/class/net/*/device) device=${devices[0]}
if [ -e "$device" ]; then
  name=$(basename "$(dirname "$device")")
  "$NICPIN" plan --format json "$name" > "$SCRATCH/outside" 2>&1
  count unshare -rnm bash "$DIR/names.sh" "$name"
else
  echo "not tested: names in another namespace, since no interface here has a device"
  skipped=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
