#!/bin/bash
# names.sh - runs in a network namespace of its own, and sees the /sys of the one before; run.sh starts it. An interface
# of that /sys and one here have the same name and the same index.
set -u
OUT=$SCRATCH/out ERR=$SCRATCH/err CHECKS=0 FAILED=0
name=$1

failed() { FAILED=$((FAILED + 1)); echo "FAIL: $1"; sed 's/^/    /' "$OUT" "$ERR"; }
has() { CHECKS=$((CHECKS + 1)); grep -qF -e "$2" "$OUT" || { failed "$1"; echo "  expected to find: $2"; }; }
hasnt() { CHECKS=$((CHECKS + 1)); ! grep -qF -e "$2" "$OUT" || { failed "$1"; echo "  found: $2"; }; }

# The channels of a veth can be set.
index=$(cat "/sys/class/net/$name/ifindex")
ip link add "$name" index "$index" numrxqueues 4 numtxqueues 4 type veth peer name peer0 || exit 1
"$NICPIN" plan --channels 3 --format json "$name" > "$OUT" 2> "$ERR"
has "the note" '"code": "other-namespace"'
has "what /sys has" "\"name\": \"$name\""
hasnt "a change of the other interface's channels" '"wanted"'
has "channels are unknown" '"channels": null'
"$NICPIN" capture -o "$SCRATCH/capture.tar.gz" > "$OUT" 2> "$ERR"
tar -tzf "$SCRATCH/capture.tar.gz" > "$OUT" 2> "$ERR"
has "the capture says so" "nicpin/ethtool/$name/other-namespace"
hasnt "the capture has no channels of the other interface" "nicpin/ethtool/$name/channels"

# The plan in the namespace of /sys, from before this one was made
cp "$SCRATCH/outside" "$OUT"
has "the plan" '"schema": "nicpin.plan/1"'
hasnt "the note where there is no need" '"code": "other-namespace"'
echo "$CHECKS checks of names, $FAILED failed"
[ $FAILED = 0 ]
