#!/bin/sh
# shellcheck shell=dash disable=SC1091
# dist/cloud-init/nicpin.yaml as the user data of a machine's first boot: nicpin is installed, has the policy, and has applied.
. /harness/lib.sh
. /payload/assert.sh
PATH=${PATH#/payload:} # what the package installs

holds "cloud-init ended" poll 120 test -e /var/lib/cloud/instance/boot-finished
cat /var/log/cloud-init-output.log
equal "its state" "status: done" "$(cloud-init status)"
equal "the package" "install ok installed" "$(dpkg-query --show --showformat='${Status}' nicpin)"
contains "the policy" "irq-cores = 8" /etc/nicpin.toml
equal "the unit" "active enabled" "$(systemctl is-active nicpin.service) $(systemctl is-enabled nicpin.service)"
expect 0 nicpin check --exact
expect 0 nicpin restore
expect 2 nicpin check --exact
finish
