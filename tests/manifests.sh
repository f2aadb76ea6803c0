#!/bin/bash
# manifests.sh - dist/kubernetes and dist/cloud-init with the validators of those who read them, which are also shown to
# reject a mistake. tests/vm/run.sh runs both (`container`, `cloud-init`).
#
# kubernetes-validate comes from PyPI, cloud-init from Debian; both, and what they need, go into
# ${NICPIN_CACHE:-~/.cache/nicpin-python} and are not installed. Tests $NICPIN, by default target/debug/nicpin. Needs
# python3 with venv, and apt. The last line counts.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
NICPIN=${NICPIN:-${CARGO_TARGET_DIR:-target}/debug/nicpin}
KUBERNETES_VALIDATE=1.37.0
CACHE=${NICPIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nicpin-python}/manifests-$KUBERNETES_VALIDATE
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

if [ ! -e "$CACHE/done" ]; then
  rm -rf "$CACHE"
  /usr/bin/python3 -m venv "$CACHE"
  "$CACHE/bin/pip" install --quiet --disable-pip-version-check "kubernetes-validate==$KUBERNETES_VALIDATE" \
    configobj jinja2 jsonpatch jsonschema netifaces oauthlib pyyaml requests
  (cd "$CACHE" && apt-get download -qq -o APT::Sandbox::User=root cloud-init && dpkg-deb --extract cloud-init_*.deb cloud-init)
  touch "$CACHE/done"
fi

passed=0 failed=0
result() { # STATUS WANTED WHAT
  if [ "$1" = "$2" ]; then passed=$((passed + 1)); echo "ok    $3"; else
    failed=$((failed + 1)); echo "FAIL  $3"; sed 's/^/      /' "$WORK/said"
  fi
}
# accepts WHAT COMMAND..., rejects WHAT COMMAND...
accepts() { local status=0; "${@:2}" >"$WORK/said" 2>&1 || status=1; result $status 0 "$1"; }
rejects() {
  local status=0
  "${@:2}" >"$WORK/said" 2>&1 || ! grep -qE 'did not validate|schema errors' "$WORK/said" || status=1
  result $status 1 "$1: $(tail -n 1 "$WORK/said" | cut -c -100)"
}

kubernetes() { "$CACHE/bin/kubernetes-validate" --strict "$1"; }
cloud_init() { PYTHONPATH=$CACHE/cloud-init/usr/lib/python3/dist-packages "$CACHE/bin/python" -m cloudinit.cmd.main schema --config-file "$1"; }

accepts "dist/kubernetes/nicpin.yaml" kubernetes dist/kubernetes/nicpin.yaml
for typo in 's/hostNetwork/hostNetwrok/' 's/mountPath/mountpath/' 's/limits:/limit:/' 's/256Mi/[256]/'; do
  sed "$typo" dist/kubernetes/nicpin.yaml >"$WORK/typo.yaml"
  rejects "DaemonSet with $typo" kubernetes "$WORK/typo.yaml"
done

accepts "dist/cloud-init/nicpin.yaml" cloud_init dist/cloud-init/nicpin.yaml
for typo in 's/permissions/permission/' 's/content:/contents:/' 's/\[apt-get,/[{apt-get: 1},/'; do
  sed "$typo" dist/cloud-init/nicpin.yaml >"$WORK/typo.yaml"
  rejects "cloud-config with $typo" cloud_init "$WORK/typo.yaml"
done

# Commands and files of the manifests work with this nicpin.
"$CACHE/bin/python" - "$WORK" <<'END'
import sys, yaml
pod = yaml.safe_load(open("dist/kubernetes/nicpin.yaml"))["spec"]["template"]["spec"]
open(f"{sys.argv[1]}/command", "w").write(" ".join(pod["containers"][0]["command"][1:]) + "\n")
files = yaml.safe_load(open("dist/cloud-init/nicpin.yaml"))["write_files"]
open(f"{sys.argv[1]}/nicpin.toml", "w").write(files[0]["content"])
END
read -r -a words <"$WORK/command"
accepts "the command of the container" "$NICPIN" man "${words[0]}"
accepts "its options" "$NICPIN" "${words[@]}" --help
accepts "the policy of cloud-init" "$NICPIN" plan --root fixtures/four-node --config "$WORK/nicpin.toml"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
