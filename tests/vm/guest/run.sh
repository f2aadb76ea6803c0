#!/bin/sh
# shellcheck shell=dash disable=SC1091
# Commands on a card's node and far from it: where the kernel says that they are.
. /harness/lib.sh
. /payload/assert.sh

# bound CPUS POLICY ARGS...: `nicpin run ARGS` gives its command these CPUs and this memory policy
bound() {
  local cpus=$1 policy=$2; shift 2
  expect 0 nicpin run "$@" -- cat /proc/self/status
  equal "CPUs of: run $*" "$cpus" "$(sed -n 's/^Cpus_allowed_list:\t*//p' "$OUT")"
  equal "allowed memory of: run $*" 0-4 "$(sed -n 's/^Mems_allowed_list:\t*//p' "$OUT")"
  expect 0 nicpin run "$@" -- cat /proc/self/numa_maps
  equal "memory policy of: run $*" "$policy" "$(sed -n '/ heap /{s/^[^ ]* \([^ ]*\) .*/\1/p;q}' "$OUT")"
}

# Every CPU of nodes 0 to 2 takes interrupts.
bound 0-3 bind:0 nic0
bound 4-7 bind:1 nic1
bound 8-11 "prefer:2" --memory preferred nic2
bound 12-15 local --memory local nic3
# The node of nic4 has memory and no CPU; the nearest is 2, the farthest 3.
bound 8-11 bind:2 nic4
bound 12-15 bind:3 --far nic4
bound 12-15 bind:3 --far nic0
bound 4-7 bind:1 --node 1 nic0
bound 2,9 bind:0 --cpus 2,9 nic0
bound 0-3 bind:0 pci:0000:21:00.0

# Its memory is where the policy says, for all that it touches.
# shellcheck disable=SC2016  # its own shell's
expect 0 nicpin run --node 3 nic0 -- sh -c 'x=$(head -c 4000000 /dev/zero | tr "\000" x); cat /proc/$$/numa_maps; : "$x"'
pages() { grep ' anon=' "$OUT" | grep -v ' file=' | grep -o "N$1=[0-9]*" | awk -F= '{n += $2} END {print n + 0}'; }
at_least "its pages on node 3" 900 "$(pages 3)"
equal "its pages elsewhere" 0 "$(pages '[0124]')"

# Exit status, signal and directory are the command's.
expect 42 nicpin run nic0 -- sh -c 'exit 42'
expect 143 nicpin run nic0 -- sh -c 'kill -TERM $$'
expect 127 nicpin run nic0 -- /no/such/command
contains "a missing command" "nicpin: /no/such/command: no such file or directory (ENOENT)" "$ERR"
expect 1 nicpin run nic5 -- true
contains "a card without a node" "nic5: its node is unknown (numa_node is -1 or missing)" "$ERR"
expect 64 nicpin run --node 4 nic0 -- true

# Root is not needed.
chmod 755 /payload /payload/nicpin
expect 0 as_nobody "/payload/nicpin run nic1 -- cat /proc/self/status"
equal "CPUs as nobody" 4-7 "$(sed -n 's/^Cpus_allowed_list:\t*//p' "$OUT")"

# In a cpuset: the CPUs that it leaves, with a note; an error if it leaves none.
mkdir -p /sys/fs/cgroup
grep -q ' /sys/fs/cgroup ' /proc/mounts || mount -t cgroup2 none /sys/fs/cgroup
echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/some
echo 0-1,4 > /sys/fs/cgroup/some/cpuset.cpus
echo 0-1 > /sys/fs/cgroup/some/cpuset.mems
inside() { sh -c 'echo $$ > /sys/fs/cgroup/some/cgroup.procs; exec "$@"' sh "$@"; }
expect 0 inside nicpin run nic0 -- cat /proc/self/status
equal "CPUs in a cpuset" 0-1 "$(sed -n 's/^Cpus_allowed_list:\t*//p' "$OUT")"
contains "a cpuset that leaves some" "nicpin: this process's cpuset contains only CPUs 0-1 of 0-3" "$ERR"
expect 1 inside nicpin run nic2 -- true
contains "a cpuset that leaves none" "cannot run on CPUs 8-11: invalid argument (EINVAL): this process's cpuset holds none" "$ERR"
expect 1 inside nicpin run --cpus 1-2 nic0 -- true
contains "named CPUs" "this process's cpuset contains only CPUs 1 of 1-2" "$ERR"
expect 1 inside nicpin run --cpus 0-1 --node 2 nic0 -- true
contains "memory that the cpuset does not have" "cannot bind memory to node 2: invalid argument (EINVAL)" "$ERR"
expect 0 inside nicpin run --dry-run nic0
contains "a dry run in a cpuset" "this process's cpuset contains only CPUs 0-1 of 0-3" "$OUT"
finish
