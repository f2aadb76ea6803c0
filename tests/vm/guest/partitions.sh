#!/bin/bash
# shellcheck disable=SC1091,SC2086
# nicpin-watch.service while cpuset partitions of cgroup v2 are made, changed and removed: no vector stays on their CPUs, and
# the plan is back when they have gone.
. /harness/lib.sh
. /payload/assert.sh
. /payload/watch-lib.sh

CGROUPS=/sys/fs/cgroup
poll 60 as_before || failed "the plan is not reached after the boot"
poll 30 quiet

# Control vectors stay where they are, also if another program moved them there.
queue_irqs() { grep -l -E 'input|output' /sys/kernel/irq/*/actions | cut -d/ -f5; }
on_cpu() { # CPU: queue vectors that may be delivered there
  local irq count=0
  for irq in $(queue_irqs); do
    case ",$(cat "/proc/irq/$irq/smp_affinity_list")," in *",$1,"*) count=$((count + 1));; esac
  done
  echo $count
}
settings() { # FILE
  snapshot "$1.all"
  local irq pattern=rps_
  for irq in $(queue_irqs); do pattern="$pattern|/irq/$irq/"; done
  grep -E "$pattern|xps_" "$1.all" > "$1"
}
# Settings of queues that differ from the plan: irqbalance may move a control IRQ to an exclusive CPU meanwhile.
differing() {
  local pattern
  pattern=$(queue_irqs | sed 's|.*|/irq/&/|' | paste -sd '|')
  nicpin check --exact --json > /tmp/check || [ $? = 2 ] || echo "unknown, and"
  sed -n 's/.*"path": "\(.*\)".*/\1/p' /tmp/check | grep -c -E "/queues/|$pattern"
}
# queues_on CPU: how many queues the plan puts there
queues_on() { nicpin plan --json | grep -c "^ *\"cpus\": \"$1\",\$"; }
partition() { # CGROUP CPUS STATE
  echo "$2" > "$CGROUPS/$1/cpuset.cpus" && echo "$3" > "$CGROUPS/$1/cpuset.cpus.partition"
}
has_state() { equal "the state of $1" "$2" "$(cat "$CGROUPS/$1/cpuset.cpus.partition")"; }
member() { echo member > "$CGROUPS/$1/cpuset.cpus.partition"; }
settings /tmp/planned
before=$(on_cpu 1)
at_least "vectors on CPU 1 without partitions" 1 "$before"

section "cgroups that are no partitions"
# systemd enables controllers when it wants them, and not for this cgroup.
fresh
count=$(runs)
echo +cpuset > $CGROUPS/cgroup.subtree_control
mkdir $CGROUPS/guest
for n in $(seq 200); do mkdir "$CGROUPS/system.slice/none$n"; done
for n in $(seq 200); do rmdir "$CGROUPS/system.slice/none$n"; done
sleep 3
equal "runs for cgroups without CPUs of their own" 0 $(($(runs) - count))

section "made, changed, removed"
fresh
corrected "partition root on CPU 1" partition guest 1 root
has_state guest root
equal "vectors on CPU 1" 0 "$(on_cpu 1)"
# The vectors may be off the CPU before the run that shows it has ended.
shows_it() { nicpin status > /tmp/status; grep -q "exclusive CPUs 1" /tmp/status; }
poll 5 shows_it
contains "status" "exclusive CPUs 1" /tmp/status
nicpin nodes > /tmp/nodes; contains "nodes" "CPUs 1 of node 0 are in exclusive cpuset partitions" /tmp/nodes
at_least "queues that a plan without the option sends to CPU 1" 1 "$(queues_on 1)"
equal "settings of queues that differ" 0 "$(differing)"
fresh
corrected "a whole node" sh -c "echo 2-3 > $CGROUPS/guest/cpuset.cpus"
has_state guest root
equal "vectors on CPUs 2 and 3" "0 0" "$(on_cpu 2) $(on_cpu 3)"
at_least "vectors on CPU 1 again" 1 "$(on_cpu 1)"
fresh
corrected "its CPU goes offline" sh -c 'echo 0 > /sys/devices/system/cpu/cpu3/online'
has_state guest root
fresh
corrected "and online" sh -c 'echo 1 > /sys/devices/system/cpu/cpu3/online'
has_state guest root
equal "vectors on CPUs 2 and 3" "0 0" "$(on_cpu 2) $(on_cpu 3)"
fresh
corrected "no partition any more" member guest
settings /tmp/now; same_file "settings" /tmp/planned /tmp/now
fresh
corrected "partition isolated" partition guest 1 isolated
has_state guest isolated
equal "vectors on CPU 1" 0 "$(on_cpu 1)"
[ ! -e $CGROUPS/cpuset.cpus.isolated ] || equal "the kernel's list" 1 "$(cat $CGROUPS/cpuset.cpus.isolated)"
fresh
corrected "the cgroup is removed" rmdir $CGROUPS/guest
settings /tmp/now; same_file "settings" /tmp/planned /tmp/now

if [ -e $CGROUPS/init.scope/cpuset.cpus.exclusive ]; then
  section "a remote partition"
  mkdir -p $CGROUPS/above/guest
  fresh
  count=$(runs)
  echo 1-2 > $CGROUPS/above/cpuset.cpus.exclusive
  sleep 3
  equal "runs for CPUs that are only reserved" 0 $(($(runs) - count))
  echo +cpuset > $CGROUPS/above/cgroup.subtree_control
  echo 1 > $CGROUPS/above/guest/cpuset.cpus.exclusive
  corrected "remote partition" sh -c "echo root > $CGROUPS/above/guest/cpuset.cpus.partition"
  has_state above/guest root
  has_state above member
  equal "CPUs of the cgroup above" 1-2 "$(cat $CGROUPS/above/cpuset.cpus.exclusive.effective)"
  equal "vectors on CPU 1" 0 "$(on_cpu 1)"
  at_least "vectors on CPU 2, which is only reserved" 1 "$(on_cpu 2)"
  fresh
  corrected "it is removed" rmdir $CGROUPS/above/guest
  settings /tmp/now; same_file "settings" /tmp/planned /tmp/now
fi

section "a policy that says otherwise"
printf '[defaults]\navoid-exclusive = false\n' > /etc/nicpin.toml
mkdir -p $CGROUPS/guest
fresh
partition guest 1 root
sleep 3
poll 20 quiet
settings /tmp/now; same_file "settings" /tmp/planned /tmp/now
equal "settings of queues that differ" 0 "$(differing)"
finish
