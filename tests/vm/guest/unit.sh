#!/bin/sh
# shellcheck shell=dash disable=SC1091
# dist/systemd/nicpin.service under a real systemd: started, restarted, stopped, started at boot with irqbalance.
. /harness/lib.sh
. /payload/assert.sh

install -m 755 /payload/nicpin /usr/bin/nicpin
install -m 644 /payload/nicpin.service /etc/systemd/system/
systemctl stop irqbalance.service
# After each request irqbalance does not answer for one interval, which is 10 s unless it is set.
echo 'IRQBALANCE_ARGS="--interval=1"' > /etc/default/irqbalance
systemctl daemon-reload

state() { systemctl show nicpin.service --property=Result,ActiveState --value | xargs; }
journal() { journalctl --unit nicpin.service --boot --output cat > /tmp/journal; }
# drop_in LINE...: a file that changes the unit's service section
drop_in() {
  mkdir -p /run/systemd/system/nicpin.service.d
  { echo '[Service]'; printf '%s\n' "$@"; } > /run/systemd/system/nicpin.service.d/test.conf
  systemctl daemon-reload
}
no_drop_in() { rm -r /run/systemd/system/nicpin.service.d; systemctl daemon-reload; }

expect 0 systemd-analyze verify --man=no /etc/systemd/system/nicpin.service
equal "complaints about the unit" "" "$(cat "$OUT" "$ERR")"
expect 0 systemd-analyze security --offline=true --threshold=20 --no-pager /etc/systemd/system/nicpin.service
grep 'Overall exposure' "$OUT"

echo "--- start: as planned, for root and for others"
snapshot /tmp/before
expect 0 nicpin plan --format sh; cp "$OUT" /tmp/plan.sh
expect 2 nicpin check --exact
expect 0 systemctl start nicpin.service
equal "state after start" "success active" "$(state)"
as_planned /tmp/plan.sh
expect 0 nicpin check --exact
expect 0 as_nobody nicpin check --exact
expect 0 as_nobody nicpin plan
expect 0 as_nobody nicpin status
journal; contains "the journal" "refused=0" /tmp/journal
equal "state files that others may write" "" "$(find /run/nicpin -type f -perm /022)"
expect 0 systemctl start nicpin.service

echo "--- restart: the settings from before come back in between, and are replaced again"
before=$(grep -c . /tmp/journal)
expect 0 systemctl restart nicpin.service
equal "state after restart" "success active" "$(state)"
expect 0 nicpin check --exact
journal; tail -n "+$((before + 1))" /tmp/journal > /tmp/since
contains "what restart restored" "restored" /tmp/since
grep -E 'Memory|CPU|Consumed' /tmp/since
contains "what restart wrote" "changed=$(writes /tmp/plan.sh | wc -l) " /tmp/since

echo "--- stop"
expect 0 systemctl stop nicpin.service
equal "state after stop" "success inactive" "$(state)"
snapshot /tmp/now; same_file "the machine after stop" /tmp/before /tmp/now
expect 0 systemctl stop nicpin.service

echo "--- channels, which need an ioctl and time"
drop_in ExecStart= 'ExecStart=/usr/bin/nicpin start --channels 2'
expect 0 systemctl start nicpin.service
equal "queues of nic0" 2 "$(find /sys/class/net/nic0/queues/ -name 'rx-*' | wc -l)"
expect 0 systemctl stop nicpin.service
equal "queues of nic0 after stop" 4 "$(find /sys/class/net/nic0/queues/ -name 'rx-*' | wc -l)"
snapshot /tmp/now; same_file "the machine after channels" /tmp/before /tmp/now
no_drop_in

echo "--- a policy that cannot be read: the unit fails, and nothing is written"
echo 'x = 1' > /etc/nicpin.toml
expect 1 systemctl start nicpin.service
equal "state after a wrong policy" "exit-code failed" "$(state)"
journal; contains "the journal on a wrong policy" "unknown key" /tmp/journal
snapshot /tmp/now; same_file "the machine after a wrong policy" /tmp/before /tmp/now
rm /etc/nicpin.toml
systemctl reset-failed nicpin.service

echo "--- irqbalance, which runs in its own service"
expect 0 systemctl start irqbalance.service
pid=$(systemctl show irqbalance.service --property=MainPID --value)
socket() { [ -S "/run/irqbalance/irqbalance$pid.sock" ]; }
poll 20 socket
expect 0 systemctl start nicpin.service
journal; contains "irqbalance in the unit" " IRQs banned" /tmp/journal
expect 0 as_nobody nicpin status
contains "status as nobody" "runs (process $pid)" "$OUT"
expect 0 systemctl restart nicpin.service
expect 0 nicpin check --exact
expect 0 systemctl stop nicpin.service
journal; contains "irqbalance after stop" "no longer banned" /tmp/journal
drop_in ExecStart= 'ExecStart=/usr/bin/nicpin start --irqbalance stop'
expect 0 systemctl start nicpin.service
equal "irqbalance while it is stopped" inactive "$(systemctl is-active irqbalance.service)"
began=$(milliseconds)
expect 0 systemctl stop nicpin.service
at_least "milliseconds left of 60 s" 1 $((60000 - $(milliseconds) + began))
holds "irqbalance after the unit's stop" poll 20 systemctl --quiet is-active irqbalance.service
no_drop_in

echo "--- a stopped irqbalance costs 5 s, and no setting"
pid=$(systemctl show irqbalance.service --property=MainPID --value)
poll 20 socket
kill -STOP "$pid"
began=$(milliseconds)
expect 1 systemctl start nicpin.service
took=$(($(milliseconds) - began))
at_least "milliseconds left of 12 s" 1 $((12000 - took))
expect 0 nicpin check --exact
journal; contains "a stopped irqbalance" "did not answer within 5 s" /tmp/journal
kill -CONT "$pid"
holds "irqbalance answers again" poll 30 nicpin apply --quiet

echo "--- processes that others may not see"
mount -o remount,hidepid=2 /proc
for command in plan check status "measure --seconds 0.2" "run nic0 -- true"; do
  expect 0 as_nobody nicpin "$command"
done
expect 0 as_nobody nicpin status
contains "status with hidden processes" "runs (process $pid)" "$OUT"
systemctl stop irqbalance.service
mkdir -p /run/irqbalance; : > /run/irqbalance/irqbalance99.sock
expect 0 as_nobody nicpin status
contains "a process that cannot be seen" "cannot tell whether irqbalance is running" "$OUT"
expect 0 nicpin status
contains "root sees that there is none" "irqbalance is not running" "$OUT"
expect 0 nicpin restore
finish
