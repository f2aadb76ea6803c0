#!/bin/bash
# shellcheck disable=SC1091,SC2086
# near = "unit:NAME" in the policy and nicpin-watch.service: the vectors follow a service to the L3 domain where it may run,
# by AllowedCPUs= and by CPUAffinity=, keep off its own core, and restore gives back the first state.
. /harness/lib.sh
. /payload/assert.sh
. /payload/watch-lib.sh

poll 60 as_before || failed "the plan is not reached after the boot"
poll 30 quiet
systemctl stop irqbalance # which would be asked for leave at each step
cat /sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_list 2>/dev/null | sort -u > /tmp/domains
equal "L3 domains" "0-1 2-3 4-5 6-7" "$(xargs < /tmp/domains)"

# queue_cpus NIC: the CPUs of its queues, by affinity
queue_cpus() {
  local irq
  for irq in $(irqs "$1"); do
    grep -q -E 'input|output' /sys/kernel/irq/$irq/actions && cat /proc/irq/$irq/smp_affinity_list
  done | sort -u | xargs
}
are_on() { [ "$(queue_cpus "$1")" = "$2" ]; }
is_told() { # WHAT: in the note of the plan
  nicpin plan nic0 > /tmp/plan 2>&1; contains "the plan" "$1" <(tr -s ' \n' ' ' < /tmp/plan)
}
# The service sleeps: only its CPUs count.
mkdir -p /run/systemd/system
cat > /run/systemd/system/pinned.service <<'EOF'
[Service]
ExecStart=/bin/sleep infinity
AllowedCPUs=2
EOF
systemctl daemon-reload
systemctl stop $UNIT
expect 0 nicpin restore
snapshot /tmp/first
systemctl start $UNIT
poll 20 as_before || failed "not as planned after a restore"
snapshot /tmp/planned

section "a unit that does not run"
printf '[defaults]\nnear = "unit:pinned"\n' > /etc/nicpin.toml
poll 20 as_before || failed "not as planned with a unit that does not run"
is_told "unit:pinned.service does not run"
snapshot /tmp/now; same_file "settings" /tmp/planned /tmp/now

section "it starts, with AllowedCPUs=2"
fresh
corrected "start" systemctl start pinned
equal "nic0's queues" 3 "$(queue_cpus nic0)"
equal "nic1's queues are on its own node" "4 5 6 7" "$(queue_cpus nic1)"
is_told "near unit:pinned.service, which may use CPU 2"
nicpin plan nic1 > /tmp/plan; contains "the plan of nic1" "no candidate CPU is in the same L3 domain" <(tr -s ' \n' ' ' < /tmp/plan)
expect 0 nicpin check --exact
contains "its events" "CPUs of unit:pinned.service" $STATE

section "other CPUs at run time"
fresh
corrected "AllowedCPUs=0" systemctl set-property --runtime pinned AllowedCPUs=0
equal "nic0's queues" 1 "$(queue_cpus nic0)"
fresh
corrected "AllowedCPUs=5, on the other node" systemctl set-property --runtime pinned AllowedCPUs=5
equal "nic1's queues" 4 "$(queue_cpus nic1)"
equal "nic0's queues are on its own node" "0 1 2 3" "$(queue_cpus nic0)"

section "check compares with the last apply"
systemctl stop $UNIT
systemctl set-property --runtime pinned AllowedCPUs=6
expect 0 nicpin check --exact
nicpin status --seconds 0 > /tmp/status; contains "status" "now it may use CPU 6" <(tr -s ' \n' ' ' < /tmp/status)
expect 0 nicpin apply
equal "nic1's queues" 7 "$(queue_cpus nic1)"
systemctl stop pinned
expect 0 nicpin check --exact
expect 0 nicpin apply
equal "nic1's queues after its end" 7 "$(queue_cpus nic1)"
systemctl start $UNIT
poll 20 as_before || failed "not as planned after its end"

section "CPUAffinity= and a process"
cat > /run/systemd/system/pinned.service <<'EOF'
[Service]
ExecStart=/bin/sleep infinity
CPUAffinity=2
EOF
rm -rf /run/systemd/system.control
systemctl daemon-reload
fresh
corrected "start with CPUAffinity=2" systemctl start pinned
poll 10 are_on nic0 3 || failed "nic0's queues are on $(queue_cpus nic0)"
echo > /etc/nicpin.toml
poll 20 as_before
systemctl stop $UNIT
expect 0 nicpin apply --near "pid:$(systemctl show pinned --property MainPID --value)" nic0
equal "nic0's queues near the process" 3 "$(queue_cpus nic0)"
systemctl stop pinned
expect 64 nicpin plan --near pid:4194303 nic0

section "restore"
expect 0 nicpin restore
snapshot /tmp/restored
same_file "settings" /tmp/first /tmp/restored
finish
