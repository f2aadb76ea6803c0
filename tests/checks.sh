# shellcheck shell=bash
# checks.sh - what tests/ansible.sh and tests/packages.sh count with. Sourced after WORK, a directory, is set.

passed=0 failed=0
ok() { passed=$((passed + 1)); echo "ok    $*"; }
bad() { failed=$((failed + 1)); echo "FAIL  $*"; }
# holds WHAT COMMAND...
holds() { if "${@:2}" >"$WORK/said" 2>&1; then ok "$1"; else bad "$1"; sed 's/^/      /' "$WORK/said"; fi; }
# equal WHAT EXPECTED ACTUAL
equal() {
  if [ "$2" = "$3" ]; then ok "$1"; else bad "$1"; diff <(echo "$2") <(echo "$3") | sed 's/^/      /;20q' || true; fi
}
