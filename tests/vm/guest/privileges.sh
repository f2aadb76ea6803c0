#!/bin/sh
# shellcheck shell=dash disable=SC1091
# two-node: which write takes which capability, as the help and CONTRIBUTING.md say. Needs capsh (libcap2-bin).
. /harness/lib.sh
. /payload/assert.sh

S=/tmp/plan.sh
export PATH=$PATH:/usr/sbin:/sbin
with() { # CAPSH-OPTIONS -- COMMAND: a root that has lost something
  local options=''
  while [ "$1" != -- ]; do options="$options $1"; shift; done; shift
  # shellcheck disable=SC2086
  capsh $options --shell=/bin/sh -- -c "PATH=$PATH $*"
}
snapshot /tmp/before
expect 0 nicpin plan --format sh; cp "$OUT" $S

# Reading needs no capability.
for command in "plan --format sh" "capture -o /tmp/capture.tar.gz --force"; do
  # shellcheck disable=SC2086
  expect 0 with --drop=all -- nicpin $command
done
expect 2 with --drop=all -- nicpin check --exact
snapshot /tmp/now; same_file "the machine after reading" /tmp/before /tmp/now

# Without CAP_NET_ADMIN vectors move, and steering does not.
expect 1 with --drop=cap_net_admin -- nicpin apply
equal "vectors changed" "$(writes $S | grep -c ^/proc/irq/)" "$(number changed)"
equal "steering refused" "$(writes $S | grep -c ^/sys/)" "$(number refused)"
contains "the fix" CAP_NET_ADMIN "$OUT"
contains "the kernel's answer" EPERM "$OUT"
expect 1 with --drop=cap_net_admin -- nicpin apply nic0 --channels 2
contains "channels" "EPERM" "$OUT"
expect 0 nicpin restore
snapshot /tmp/now; same_file "the machine after restore" /tmp/before /tmp/now

# Root needs only CAP_NET_ADMIN: it owns the files.
all=$(capsh --print | sed -n 's/^Bounding set =//p' | tr ',' '\n' | grep -v '^cap_net_admin$' | xargs | tr ' ' ',')
expect 0 with "--drop=$all" -- nicpin apply
as_planned $S
expect 0 with "--drop=$all" -- nicpin restore
snapshot /tmp/now; same_file "the machine after restore with one capability" /tmp/before /tmp/now
finish
