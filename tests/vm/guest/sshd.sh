#!/bin/sh
# shellcheck shell=dash disable=SC1091
# A machine to log in to, for tests/vm/ansible.sh: nic0 has the address 10.9.0.1, and sshd takes the payload's key. It
# ends when /root/done exists, with the number in it.
. /harness/lib.sh
install -D -m 600 /payload/key.pub /root/.ssh/authorized_keys
poll 60 test -e /sys/class/net/nic0 # udev names it
ip addr add 10.9.0.1/24 dev nic0
ip link set dev nic0 up
# A login session of systemd takes half a minute here.
echo 'UsePAM no' > /etc/ssh/sshd_config.d/test.conf
systemctl restart ssh.service
echo "sshd: $(systemctl is-active ssh.service)"
poll "$1" test -s /root/done
exit "$(cat /root/done)"
