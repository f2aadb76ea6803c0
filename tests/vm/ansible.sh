#!/bin/bash
# ansible.sh - the role of dist/ansible over ssh, on a Debian with systemd in a virtual machine: check mode on a machine
# without nicpin, installation from the deb, a second run that changes nothing, and back; the same with nicpin-watch, its
# removal while it runs, an installation from the archive, and the watcher for one interface.
#
#   tests/vm/ansible.sh       takes about ten minutes; not part of .ci/run
#
# Needs what run.sh needs, ssh, the packages in target/dist (dist/build), and the virtual environment of tests/ansible.sh, which
# has to have run once. The last line counts.
set -euo pipefail
VM_DIR=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TOP=$(cd "$VM_DIR/../.." && pwd)
DEB=$(echo "${CARGO_TARGET_DIR:-$TOP/target}"/dist/*.deb)
ARCHIVE=$(echo "${CARGO_TARGET_DIR:-$TOP/target}"/dist/*.tar.gz)
for venv in "${NICPIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nicpin-python}"/ansible-*; do PATH=$venv/bin:$PATH; done
WORK=$(mktemp -d)
VM='' HTTP=''
trap 'kill $VM $HTTP 2>/dev/null; wait; rm -rf "$WORK"' EXIT

ssh-keygen -q -t ed25519 -N '' -f "$WORK/key"
"$VM_DIR/vm-run.sh" --topology small --system bookworm+irqbalance+openssh-server+python3+python3-apt --timeout 2400 \
  --script "$VM_DIR/guest/sshd.sh" --payload "$WORK/key.pub" --qemu-arg -pidfile --qemu-arg "$WORK/pid" -- 2300 \
  >"$WORK/vm.out" 2>&1 & VM=$!
until grep -q '^sshd: active' "$WORK/vm.out"; do kill -0 "$VM" || { cat "$WORK/vm.out"; exit 1; }; sleep 1; done
# QEMU has a network namespace of its own, in which the guest's nic0 is on bridge w0.
in_namespace() { nsenter --target "$(cat "$WORK/pid")" --net "$@"; }
in_namespace ip addr add 10.9.0.254/24 dev br-w0
in_namespace python3 -m http.server --bind 10.9.0.254 --directory "${DEB%/*}" 8000 >"$WORK/http" 2>&1 & HTTP=$!

mkdir -p "$WORK/ansible_collections/nicpin"
cp -a "$TOP/dist/ansible" "$WORK/ansible_collections/nicpin/nicpin"
export ANSIBLE_COLLECTIONS_PATH=$WORK ANSIBLE_LOCAL_TEMP=$WORK/tmp ANSIBLE_HOME=$WORK/home ANSIBLE_NOCOLOR=1 LC_ALL=C.UTF-8
export ANSIBLE_SSH_ARGS="-o ControlMaster=auto -o ControlPersist=60s -o StrictHostKeyChecking=no -o UserKnownHostsFile=$WORK/hosts"
export ANSIBLE_HOST_KEY_CHECKING=0 ANSIBLE_PIPELINING=1 ANSIBLE_TIMEOUT=60
echo "guest ansible_host=10.9.0.1 ansible_user=root ansible_ssh_private_key_file=$WORK/key ansible_python_interpreter=/usr/bin/python3" >"$WORK/inventory"
cat >"$WORK/play.yml" <<END
- hosts: all
  roles:
    - role: nicpin.nicpin.nicpin
      vars:
        nicpin_file: $DEB
        nicpin_policy: |
          [defaults]
          avoid-cpu0 = false
END
cat >"$WORK/restore.yml" <<END
- hosts: all
  gather_facts: false
  tasks:
    - name: Restore
      nicpin.nicpin.nicpin:
        state: restored
END

passed=0 failed=0
ok() { passed=$((passed + 1)); echo "ok    $* ($SECONDS s)"; }
bad() { failed=$((failed + 1)); echo "FAIL  $*"; sed 's/^/      /' "$WORK/out"; }
recap() { in_namespace ansible-playbook --inventory "$WORK/inventory" "$@" >"$WORK/out" 2>&1; sed -n 's/^guest *: //p' "$WORK/out"; }
# run WHAT PATTERN OPTIONS...
run() { if recap "${@:3}" | grep -E "$2" >/dev/null; then ok "$1: $(sed -n 's/^guest *: //p' "$WORK/out" | xargs)"; else bad "$1"; fi; }
guest() { in_namespace ssh -q -i "$WORK/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile="$WORK/hosts" root@10.9.0.1 "$@" >"$WORK/out" 2>&1; }
holds() { if guest "$2"; then ok "$1"; else bad "$1"; fi; }

run "check mode on a machine without nicpin" 'changed=[1-9].* unreachable=0 .*failed=0 ' --check --diff "$WORK/play.yml"
holds "nothing is there" '! ls /usr/bin/nicpin /etc/nicpin.toml /run/nicpin'
run "the role" 'changed=[1-9].* unreachable=0 .*failed=0 ' --diff "$WORK/play.yml"
holds "as planned, enabled and active" 'nicpin check && systemctl is-enabled nicpin.service && systemctl is-active nicpin.service'
holds "irqbalance's line" 'grep -q policyscript=/usr/lib/nicpin /etc/default/irqbalance'
run "check mode again" 'changed=0 .*unreachable=0 .*failed=0 ' --check "$WORK/play.yml"
run "the role again" 'changed=0 .*unreachable=0 .*failed=0 ' "$WORK/play.yml"
run "restore" 'changed=1 .*failed=0 ' "$WORK/restore.yml"
run "restore again" 'changed=0 .*failed=0 ' "$WORK/restore.yml"
holds "not as planned any more" 'nicpin check; [ $? = 2 ]'
run "the role with the watcher" 'changed=[1-9].* unreachable=0 .*failed=0 ' -e nicpin_keep=watch "$WORK/play.yml"
holds "the watcher alone, as planned" 'nicpin check && systemctl is-active nicpin-watch && ! systemctl is-enabled nicpin.service'
run "the watcher again" 'changed=0 .*unreachable=0 .*failed=0 ' -e nicpin_keep=watch "$WORK/play.yml"
holds "purged while the watcher runs: nothing is left" 'dpkg --purge nicpin && ! pgrep -x nicpin &&
  ! { find / -xdev -name "*nicpin*" -not -path "/var/*"; find /run -name "*nicpin*"; } | grep .'
run "the role from a URL" 'changed=[1-9].* unreachable=0 .*failed=0 ' -e "nicpin_file=http://10.9.0.254:8000/${DEB##*/}" "$WORK/play.yml"
run "the URL again" 'changed=0 .*unreachable=0 .*failed=0 ' -e "nicpin_file=http://10.9.0.254:8000/${DEB##*/}" "$WORK/play.yml"
run "a directory that has the same package" 'changed=0 .*unreachable=0 .*failed=0 ' -e "nicpin_file=${DEB%/*}" "$WORK/play.yml"
run "no file is said" 'failed=1 ' -e nicpin_file= "$WORK/play.yml"
holds "as planned, from the URL; purged" 'nicpin check && dpkg --purge nicpin'
run "the role with the archive" 'changed=[1-9].* unreachable=0 .*failed=0 ' -e nicpin_source=archive -e "nicpin_file=$ARCHIVE" "$WORK/play.yml"
run "the archive again" 'changed=0 .*unreachable=0 .*failed=0 ' -e nicpin_source=archive -e "nicpin_file=$ARCHIVE" "$WORK/play.yml"
holds "as planned, from the archive" 'nicpin check && systemctl is-active nicpin.service && ! dpkg-query --status nicpin'
run "the watcher, for one interface" 'changed=[1-9].* unreachable=0 .*failed=0 ' -e nicpin_source=none -e nicpin_keep=watch -e '{"nicpin_interfaces": ["nic0"]}' "$WORK/play.yml"
holds "the watcher has it" 'pgrep -fx "/usr/bin/nicpin watch --if-present nic0"'
run "the watcher is stopped" 'changed=[1-9].* unreachable=0 .*failed=0 ' -e nicpin_source=none -e nicpin_keep=none "$WORK/play.yml"
holds "it is, and its drop-in is gone" '! systemctl is-active nicpin-watch && ! ls /etc/systemd/system/nicpin-watch.service.d/*'
guest 'echo 0 > /root/done' || :
if wait "$VM"; then ok "the machine ended"; else bad "the machine"; fi
VM=
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
