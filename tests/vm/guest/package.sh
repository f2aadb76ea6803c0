#!/bin/sh
# shellcheck shell=dash disable=SC1091
# The deb in a Debian with its own systemd: installed, enabled, rebooted, upgraded, removed and purged.
. /harness/lib.sh
. /payload/assert.sh
PATH=${PATH#/payload:} # what the package installs

unit() { systemctl show nicpin.service --property="$1" --value; }
version() { dpkg-query --show --showformat='${Version}' nicpin; }
named() {
  find / -xdev -name '*nicpin*' -not -path '/harness/*' -not -path '/payload/*' -not -path '/tmp/*'
  find /run -name '*nicpin*' -not -path '/run/payload/*'
}
record() { find /run/nicpin -type f -exec cksum {} + | sort; }

if [ ! -e /root/before-reboot ]; then
  echo "--- install: nothing is enabled, started or written"
  systemctl disable --quiet --now irqbalance.service   # it would move vectors between two snapshots
  snapshot /tmp/before
  expect 0 dpkg --install /payload/nicpin.deb
  snapshot /tmp/now; same_file "the machine after the installation" /tmp/before /tmp/now
  for unit in /usr/lib/systemd/system/nicpin*; do
    equal "${unit##*/} is enabled" disabled "$(systemctl is-enabled "${unit##*/}")"
    equal "${unit##*/} is active" inactive "$(systemctl is-active "${unit##*/}")"
  done
  equal "/run/nicpin" "" "$(find /run/nicpin 2>/dev/null)"
  expect 0 nicpin plan --format sh; cp "$OUT" /tmp/plan.sh
  : > /tmp/empty.toml
  expect 0 nicpin plan --format sh --config /tmp/empty.toml
  same_file "the plan with the example policy" "$OUT" /tmp/plan.sh
  expect 0 systemctl enable nicpin.service
  echo "--- reboot"
  echo "$CHECKS $FAILED" > /root/before-reboot
  : > /run/rebooting
  systemctl reboot
  exit
fi
read -r CHECKS FAILED < /root/before-reboot

echo "--- after the reboot: as planned"
is_active() { [ "$(unit ActiveState)" = active ]; }
holds "the unit started at boot" poll 30 is_active
expect 0 nicpin check --exact
expect 0 systemctl stop nicpin.service
snapshot /tmp/before
expect 2 nicpin check --exact
expect 0 systemctl start nicpin.service
expect 0 nicpin check --exact

echo "--- upgrade: an own policy stays, and nothing is written or restored, also where the machine is not as planned"
expect 0 dpkg-deb --raw-extract /payload/nicpin.deb /tmp/new
sed -i 's/^Version: .*/Version: 999-1/' /tmp/new/DEBIAN/control
sed -i 's/^Description=.*/Description=Of the new version/' /tmp/new/usr/lib/systemd/system/nicpin.service
echo '# of the new version' >> /tmp/new/etc/nicpin.toml
expect 0 dpkg-deb --root-owner-group -Znone --build /tmp/new /tmp/new.deb
echo '# my own line' >> /etc/nicpin.toml
irq=$(irqs nic1 | tail -n 1)
echo 1 > "/proc/irq/$irq/smp_affinity"
snapshot /tmp/drifted; record > /tmp/record; invocation=$(unit InvocationID)
expect 2 nicpin check --exact
expect 0 dpkg --install --force-confold /tmp/new.deb
equal "version after the upgrade" 999-1 "$(version)"
snapshot /tmp/now; same_file "the machine after the upgrade" /tmp/drifted /tmp/now
record > /tmp/now; same_file "the record after the upgrade" /tmp/record /tmp/now
equal "the unit's run after the upgrade" "active $invocation" "$(unit ActiveState) $(unit InvocationID)"
equal "the unit is the new one" "Of the new version" "$(unit Description)"
equal "the unit is enabled after the upgrade" enabled "$(systemctl is-enabled nicpin.service)"
equal "the policy after the upgrade" "# my own line" "$(tail -n 1 /etc/nicpin.toml)"

echo "--- remove: the unit stops, which restores"
expect 0 dpkg --remove nicpin
snapshot /tmp/now; same_file "the machine after the removal" /tmp/before /tmp/now
equal "programs after the removal" "" "$(find /usr -name '*nicpin*')"
equal "the policy after the removal" "# my own line" "$(tail -n 1 /etc/nicpin.toml)"

echo "--- installed again: as before the removal"
expect 0 dpkg --install --force-confold /payload/nicpin.deb
equal "the unit is enabled again" enabled "$(systemctl is-enabled nicpin.service)"
equal "the unit is active again" inactive "$(systemctl is-active nicpin.service)"

echo "--- upgrade while the watcher runs: it stays, and still restores the plan"
watcher() { systemctl show nicpin-watch.service --property=ActiveState,MainPID --value | xargs; }
expect 0 systemctl start nicpin-watch.service
holds "the watcher has applied" poll 60 nicpin check --quiet --exact
running=$(watcher)
expect 0 dpkg --install --force-confold /tmp/new.deb
equal "the watcher after the upgrade" "$running" "$(watcher)"
irq=$(irqs nic1 | tail -n 1)
echo 1 > "/proc/irq/$irq/smp_affinity"
echo 0 > /sys/devices/system/cpu/cpu3/online; echo 1 > /sys/devices/system/cpu/cpu3/online
holds "the plan is back after an event" poll 60 nicpin check --quiet --exact
equal "the watcher after the event" "$running" "$(watcher)"
expect 0 systemctl restart nicpin-watch.service
holds "the new one has applied" poll 60 nicpin check --quiet --exact

echo "--- purge: nothing is left"
expect 0 dpkg --purge nicpin
equal "files with that name after the purge" "" "$(named)"
equal "processes after the purge" "" "$(pidof nicpin)"
snapshot /tmp/now
holds "settings that the watcher applied stay" sh -c '! cmp -s /tmp/before /tmp/now'

echo "--- a machine without cards: the units succeed"
for nic in $NICS; do
  device=$(readlink -f "/sys/class/net/$nic/device")
  echo 1 > "${device%/virtio*}/remove"
done
equal "cards" "" "$(ls -d /sys/class/net/nic* 2>/dev/null)"
expect 0 dpkg --install /payload/nicpin.deb
for unit in nicpin nicpin-watch; do
  expect 0 systemctl start $unit.service
  equal "$unit" "success active" "$(systemctl show $unit.service --property=Result,ActiveState --value | xargs)"
done
expect 0 systemctl stop nicpin.service
expect 0 dpkg --purge nicpin
equal "files with that name after the last purge" "" "$(named)"
finish
