#!/bin/bash
# ansible.sh - dist/ansible with a real ansible-core: the module on four trees, in check mode, with differences, with
# policies, and back; then ansible-lint and ansible-test sanity.
#
#   ansible.sh [--quick]
#
#   --quick   without ansible-lint and ansible-test
#
# Tests $NICPIN, by default target/debug/nicpin. ansible-core and ansible-lint come from PyPI, in these versions, into a
# virtual environment in ${NICPIN_CACHE:-~/.cache/nicpin-python}. Needs python3 with venv. The last line counts.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
export LC_ALL=C.UTF-8
NICPIN=$(readlink -f "${NICPIN:-${CARGO_TARGET_DIR:-target}/debug/nicpin}")
CORE=2.19.14 LINT=26.10.1
VENV=${NICPIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nicpin-python}/ansible-$CORE-$LINT
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# shellcheck disable=SC1091,SC2154
. tests/checks.sh

echo "--- ansible-core $CORE and ansible-lint $LINT"
if [ ! -e "$VENV/done" ]; then
  rm -rf "$VENV"
  /usr/bin/python3 -m venv "$VENV"
  "$VENV/bin/pip" install --quiet --disable-pip-version-check "ansible-core==$CORE" "ansible-lint==$LINT"
  touch "$VENV/done"
fi
PATH=$VENV/bin:$PATH
COLLECTION=$WORK/ansible_collections/nicpin/nicpin
mkdir -p "${COLLECTION%/*}"
cp -a dist/ansible "$COLLECTION"
export ANSIBLE_COLLECTIONS_PATH=$WORK ANSIBLE_LOCAL_TEMP=$WORK/tmp ANSIBLE_REMOTE_TEMP=$WORK/remote ANSIBLE_HOME=$WORK/home
export ANSIBLE_NOCOLOR=1 ANSIBLE_DEPRECATION_WARNINGS=0

echo "--- four trees"
TREES=(two-socket-mlx4 four-node two-node wide)
for tree in "${TREES[@]}"; do cp -a "fixtures/$tree" "$WORK/$tree"; mkdir -p "$WORK/$tree/etc"; done
"$NICPIN" apply --quiet --root "$WORK/two-node"                       # as planned already
REFUSED=$("$NICPIN" plan --format sh --root "$WORK/wide" | sed -n 's|.* > \(/sys/.*/xps_cpus\) .*|\1|p' | sed 1q)
ln "$WORK/wide$REFUSED" "$WORK/wide/other-name"                      # nicpin writes to no file with two names
snapshot() { (cd "$WORK/$1" && find . -type f -not -path './run/*' -not -name other-name -not -path './etc/*' -exec grep -H '' {} + | sort); }
for tree in "${TREES[@]}"; do snapshot "$tree" >"$WORK/$tree.before"; done

printf '%s ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n' "${TREES[@]}" >"$WORK/inventory"
cat >"$WORK/play.yml" <<END
- hosts: all
  gather_facts: false
  tasks:
    - name: Run the module
      nicpin.nicpin.nicpin:
        root: "$WORK/{{ inventory_hostname }}"
        config: "$WORK/{{ inventory_hostname }}/etc/nicpin.toml"
        executable: "{{ executable | default('$NICPIN') }}"
        state: "{{ state | default('applied') }}"
        atomic: "{{ atomic | default(false) }}"
        policy: "{{ policy | default(omit) }}"
      register: result
      ignore_errors: true
    - name: Keep what it returned
      ansible.builtin.copy:
        content: "{{ result | to_nice_json }}"
        dest: "$WORK/{{ inventory_hostname }}.json"
        mode: "0644"
      check_mode: false
      diff: false
      no_log: true
END
# play OPTIONS...: prints one word for each tree: changed, ok or failed
play() {
  ansible-playbook --inventory "$WORK/inventory" "$@" "$WORK/play.yml" >"$WORK/out" 2>&1 || { cat "$WORK/out"; return; }
  for tree in "${TREES[@]}"; do returned "$tree" "'failed' if r.get('failed') else 'changed' if r['changed'] else 'ok'"; done | xargs
}
# returned TREE EXPRESSION: prints an expression about `r`, what the module returned
returned() { python3 -c "import json; r = json.load(open('$WORK/$1.json')); print($2)"; }

equal "check mode" "changed changed ok changed" "$(play --check --diff)"
for tree in "${TREES[@]}"; do
  equal "check mode writes nothing on $tree" "$(cat "$WORK/$tree.before")" "$(snapshot "$tree")"
done
would=$(returned four-node "' '.join(r['writes'])")
equal "check mode names what plan would write" "$("$NICPIN" plan --json --root "$WORK/four-node" |
  python3 -c 'import json, sys; print(*[w["path"] for w in json.load(sys.stdin)["writes"]])')" "$would"
missing=
for path in $would; do grep -qF "+++ after: $path" "$WORK/out" || missing+=" $path"; done
equal "files of the plan that diff mode does not show" "" "$missing"
holds "the words of check mode" sh -c "echo \"$(returned two-socket-mlx4 "r['msg']")\" | grep -E '^[0-9]+ settings would be written, [0-9]+ already as planned$'"

equal "apply" "changed changed ok failed" "$(play --diff)"
equal "apply writes what check mode named" "$would" "$(returned four-node "' '.join(r['writes'])")"
equal "the reason of the failure" "not in the planned state: $REFUSED: has another name (a hard link)" \
  "$(returned wide "r['msg'].split(';')[0]")"
equal "hash" "$("$NICPIN" plan --json --root "$WORK/four-node" | sed -n 's/^  "hash": "\(.*\)",/\1/p')" "$(returned four-node "r['plan_hash']")"
equal "class" "$("$NICPIN" plan --json --root "$WORK/four-node" | sed -n 's/^  "class": "\(.*\)",/\1/p')" "$(returned four-node "r['hardware_class']")"
equal "states" "{'eth2': 'pending'}" "$(returned two-socket-mlx4 "{k: v for k, v in r['states'].items() if k == 'eth2'}")"
equal "the words of ok" "all 32 settings as planned" "$(returned two-node "r['msg']")"
holds "the machine is in the planned state" "$NICPIN" check --root "$WORK/four-node"
equal "apply again" "ok ok ok failed" "$(play)"
rm "$WORK/wide/other-name"

echo "--- back"
equal "restore in check mode" "changed changed changed changed" "$(play --check --extra-vars state=restored)"
would=$(returned two-socket-mlx4 "' '.join(r['writes'])")
equal "restore" "changed changed changed changed" "$(play --extra-vars state=restored)"
equal "restore writes what check mode named" "$would" "$(returned two-socket-mlx4 "' '.join(r['writes'])")"
for tree in two-socket-mlx4 four-node wide; do
  equal "$tree is as it was" "$(cat "$WORK/$tree.before")" "$(snapshot "$tree")"
done
equal "restore again" "ok ok ok ok" "$(play --extra-vars state=restored)"

echo "--- a record that cannot be restored"
"$NICPIN" apply --quiet --root "$WORK/four-node"
sed -i '0,/xps_cpus": "[^"]*"/s//xps_cpus": "x"/' "$WORK/four-node/run/nicpin/state.json"
equal "restore in check mode" "ok failed ok ok" "$(play --check --extra-vars state=restored)"
equal "restore" "ok failed ok ok" "$(play --extra-vars state=restored)"
equal "restore again" "ok failed ok ok" "$(play --extra-vars state=restored)"
holds "the reason" grep -q 'nicpin restore failed: /sys/.*but not a CPU mask' "$WORK/four-node.json"
rm "$WORK/four-node/run/nicpin/state.json"
cp -a fixtures/four-node/sys "$WORK/four-node/"

echo "--- policies"
policy='{"policy": "[defaults]\nirq-cores = 1\n"}'
equal "a policy in check mode" "changed changed changed changed" "$(play --check --diff --extra-vars "$policy")"
holds "its difference is shown" grep -qF '+irq-cores = 1' "$WORK/out"
holds "it is not written" test ! -e "$WORK/wide/etc/nicpin.toml"
equal "a policy with a wrong key" "failed failed failed failed" "$(play --extra-vars '{"policy": "x = 1\n"}')"
holds "it is not written" test ! -e "$WORK/wide/etc/nicpin.toml"
holds "the reason names the key" sh -c "grep -q 'unknown key' '$WORK/wide.json'"
equal "only the policy" "changed changed changed changed" "$(play --extra-vars state=configured --extra-vars "$policy")"
equal "settings stay" "$(cat "$WORK/wide.before")" "$(snapshot wide)"
equal "the policy, and all of it applied" "changed changed changed changed" "$(play --extra-vars "$policy")"
equal "again" "ok ok ok ok" "$(play --extra-vars "$policy")"

echo "--- a policy that one interface cannot meet, and an IRQ without files"
policy='{"policy": "[[rule]]\nmatch = { name = \"eth0\" }\nset = { scope = \"node:9\" }\n"}'
unmet="not in the planned state: eth0: node 9 of the policy's scope has no usable CPU"
equal "check mode" "failed changed changed changed" "$(play --check --diff --extra-vars "$policy")"
equal "its reason" "the policy would be replaced; $unmet; 5 settings would be written, 13 already as planned" \
  "$(returned two-socket-mlx4 "r['msg']")"
would=$(returned two-socket-mlx4 "' '.join(r['writes'])")
equal "apply" "failed changed changed changed" "$(play --extra-vars "$policy")"
equal "its reason" "the policy was replaced; $unmet" "$(returned two-socket-mlx4 "r['msg']")"
equal "the other interfaces are written" "$would" "$(returned two-socket-mlx4 "' '.join(r['writes'])")"
policy='{"policy": "[defaults]\nirq-cores = 2\n"}'
rm "$WORK/two-socket-mlx4/proc/irq/72/"smp_affinity*
equal "without an IRQ's files" "failed changed changed changed" "$(play --extra-vars "$policy")"
holds "the reason names it" grep -q 'eth2: IRQs vanished.*: 72 ' "$WORK/two-socket-mlx4.json"
equal "the others are written" True "$(returned two-socket-mlx4 "r['changed'] and len(r['writes']) > 0")"

echo "--- without nicpin"
equal "check mode is no failure" "changed changed changed changed" "$(play --check --extra-vars executable=/nowhere/nicpin)"
equal "apply is one" "failed failed failed failed" "$(play --extra-vars executable=/nowhere/nicpin)"
holds "the reason" grep -q 'is not installed' "$WORK/wide.json"

echo "--- the role"
printf -- '- hosts: all\n  roles:\n    - nicpin.nicpin.nicpin\n' >"$WORK/role.yml"
holds "its syntax" ansible-playbook --inventory "$WORK/inventory" --syntax-check "$WORK/role.yml"
cat >"$WORK/interfaces.yml" <<END
- hosts: wide
  gather_facts: false
  tasks:
    - name: Write the drop-ins of the units
      ansible.builtin.include_role:
        name: nicpin.nicpin.nicpin
        tasks_from: interfaces.yml
END
for unit in start watch; do
  holds "selectors of $unit" sh -c "ansible-playbook --inventory '$WORK/inventory' --check --diff '$WORK/interfaces.yml' \
    --extra-vars '{\"nicpin_interfaces\": [\"eth2\", \"driver:igb\"]}' | grep -x '+ExecStart=/usr/bin/nicpin $unit --if-present eth2 driver:igb'"
done
holds "ansible-doc" sh -c "ansible-doc nicpin.nicpin.nicpin | grep -q 'OPTIONS'"

if [ "${1:-}" != --quick ]; then
  echo "--- ansible-lint and ansible-test"
  holds "ansible-lint --profile production" sh -c "cd '$COLLECTION' && ansible-lint --offline --profile production"
  # ansible-test makes virtual environments with pip from a file that it would fetch.
  mkdir -p "$HOME/.ansible/test/cache"
  PIP=$HOME/.ansible/test/cache/get_pip_24_2.py
  [ -e "$PIP" ] || echo 'import ensurepip; ensurepip.bootstrap(default_pip=True)' >"$PIP"
  holds "ansible-test sanity" sh -c "cd '$COLLECTION' && ansible-test sanity --venv --python 3.11 --color no"
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
