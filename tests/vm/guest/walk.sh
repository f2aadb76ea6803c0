#!/bin/sh
# shellcheck shell=dash disable=SC1091
# The README as a new user reads it, on a Debian that has never seen Rust: install, look, apply, keep it so, see it in
# Prometheus, remove. Each step with the seconds it took under emulation.
. /harness/lib.sh
. /payload/assert.sh
PATH=${PATH#/payload:} # what the package installs
export DEBIAN_FRONTEND=noninteractive

BEGAN=$(milliseconds)
section() { echo "--- after $((($(milliseconds) - BEGAN) / 1000)) s: $1"; }
# query METRIC VALUE: whether Prometheus has it
query() { promtool query instant http://localhost:9090 "$1" 2>/dev/null | grep -q "=> $2 @"; }
as_planned() { nicpin check --exact --quiet; }

holds "there is no Rust" sh -c '! command -v cargo rustc'
# As Debian's installer sets it up
echo "127.0.0.1 localhost" > /etc/hosts
systemctl restart prometheus-node-exporter.service prometheus.service
poll 120 promtool query instant http://localhost:9090 up > /dev/null 2>&1

section "install"
expect 0 apt-get install --yes --quiet /payload/nicpin.deb
equal "nicpin-watch.service is enabled" disabled "$(systemctl is-enabled nicpin-watch.service)"

section "look"
expect 0 nicpin
contains "the fix" "nicpin apply" "$OUT"
expect 2 nicpin check
expect 0 nicpin plan

section "keep it so"
expect 0 systemctl enable --now nicpin-watch
holds "the machine is as planned" poll 20 as_planned
expect 0 nicpin status
contains "status" "watch" "$OUT"

section "see it in Prometheus"
expect 0 install -D -m 644 -t /etc/systemd/system/nicpin-watch.service.d /usr/share/nicpin/nicpin-metrics.conf
expect 0 sh -c 'systemctl daemon-reload && systemctl restart nicpin-watch'
holds "nicpin_as_planned is 1" poll 120 query nicpin_as_planned 1
promtool query instant http://localhost:9090 '{__name__=~"up|nicpin.*|node_textfile.*"}' | head -n 40
holds "node_textfile_scrape_error is 0" query node_textfile_scrape_error 0
for nic in nic0 nic1; do holds "$nic is in order" query "nicpin_interface_state{device=\"$nic\"}" "[0-4]"; done
holds "it joins node_exporter's metrics" \
  query 'nicpin_interface_local_ratio{device="nic1"} * on (device) node_network_up{device="nic1"}' "[0-9.]*"

section "an event undoes it"
restart_driver() {
  local device; device=$(basename "$(readlink -f /sys/class/net/nic1/device)")
  local driver; driver=$(readlink -f /sys/class/net/nic1/device/driver)
  echo "$device" > "$driver/unbind"; echo "$device" > "$driver/bind"
}
restart_driver
holds "the machine is as planned again" poll 40 as_planned
holds "nicpin_restores_total counts it" poll 60 query 'nicpin_restores_total>0' '[1-9]'
nicpin status | tail -n 12; grep restores /var/lib/prometheus/node-exporter/nicpin.prom; journalctl --unit nicpin-watch --boot --output cat | tail -n 12

section "undo and remove"
expect 0 nicpin restore
expect 0 apt-get purge --yes --quiet nicpin
rm -r /etc/systemd/system/nicpin-watch.service.d # as docs/install.md says
systemctl daemon-reload
equal "files that are left" "" "$(find / -xdev -name '*nicpin*' -not -path '/harness/*' -not -path '/payload/*' -not -path '/tmp/*' -not -path '/var/log/*' -not -path '/var/lib/prometheus/*'; find /run -name '*nicpin*' -not -path '/run/payload/*')"
section "the end"
finish
