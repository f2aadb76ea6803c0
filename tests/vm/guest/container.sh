#!/bin/sh
# shellcheck shell=dash disable=SC1091
# The image of dist/image by podman: the host's status, plan, apply and restore with the least privileges that do, and the pod
# of dist/kubernetes/nicpin.yaml.
. /harness/lib.sh
. /payload/assert.sh
# The kernel has no overlayfs.
printf '[storage]\ndriver = "vfs"\ngraphroot = "/var/tmp/storage"\nrunroot = "/run/storage"\n' > /etc/containers/storage.conf

manifest=/payload/nicpin.yaml
expect 0 podman load --input /payload/nicpin.oci.tar
image=$(sed -n 's/^ *image: //p' "$manifest")
holds "the image is the one that the manifest names" podman image exists "$image"
mkdir /run/nicpin
# in_container PODMAN-OPTIONS... -- ARGS: without capabilities and network; only mounts can be written to
in_container() {
  local options=''
  while [ "$1" != -- ]; do options="$options $1"; shift; done
  shift
  # shellcheck disable=SC2086
  podman run --rm --read-only --read-only-tmpfs=false --network none --cap-drop all --security-opt no-new-privileges \
    $options "$image" "$@"
}
READ="--volume /proc:/host/proc:ro --volume /sys:/host/sys:ro"
WRITE="--volume /proc:/host/proc --volume /sys:/host/sys --volume /run/nicpin:/host/run/nicpin"

echo "--- what reads: as nobody, with no capability"
snapshot /tmp/before
expect 0 in_container --user=65534 -- --version
equal "the version" "$(nicpin --version)" "$(cat "$OUT")"
# shellcheck disable=SC2086
expect 0 in_container --user=65534 $READ -- status --root /host
contains "status" nic1 "$OUT"
# shellcheck disable=SC2086
expect 0 in_container --user=65534 $READ -- plan --format sh --root /host
cp "$OUT" /tmp/plan.sh
expect 0 nicpin plan --format sh
writes "$OUT" > /tmp/of-host; writes /tmp/plan.sh > /tmp/of-container
same_file "the plan in the container" /tmp/of-host /tmp/of-container
# shellcheck disable=SC2086
expect 2 in_container --user=65534 $READ -- check --root /host
snapshot /tmp/now; same_file "the machine after reading" /tmp/before /tmp/now

echo "--- apply and restore: as root, with CAP_NET_ADMIN"
# shellcheck disable=SC2086
expect 1 in_container $WRITE -- apply --root /host
contains "apply without the capability" EPERM "$OUT"
# shellcheck disable=SC2086
expect 0 in_container --cap-add=NET_ADMIN $WRITE -- apply --root /host
as_planned /tmp/plan.sh
expect 0 nicpin check --exact
# shellcheck disable=SC2086
expect 0 in_container --cap-add=NET_ADMIN $WRITE -- restore --root /host
snapshot /tmp/now; same_file "the machine after restore" /tmp/before /tmp/now

echo "--- the pod of the manifest, with a policy"
# podman knows no DaemonSet: a Deployment has the same pod template. podman of Debian 12 leaves a Secret's volume empty.
sed 's/^kind: DaemonSet/kind: Deployment/; s/^\( *\)secret:/\1configMap:/; s/secretName:/name:/' "$manifest" > /tmp/deployment.yaml
cat > /tmp/policy.yaml <<EOF
apiVersion: v1
kind: ConfigMap
metadata:
  name: nicpin
data:
  nicpin.toml: |
    [defaults]
    irq-cores = 1
EOF
printf '[defaults]\nirq-cores = 1\n' > /tmp/nicpin.toml
expect 2 nicpin check --exact --config /tmp/nicpin.toml
expect 0 podman kube play --configmap /tmp/policy.yaml /tmp/deployment.yaml
holds "as the policy plans" poll 60 nicpin check --quiet --exact --config /tmp/nicpin.toml
container=$(podman ps --quiet --filter "ancestor=$image")
equal "root file system, capabilities and network" "true [CAP_NET_ADMIN] host" \
  "$(podman inspect --format '{{.HostConfig.ReadonlyRootfs}} {{.EffectiveCaps}} {{.HostConfig.NetworkMode}}' "$container")"
snapshot /tmp/applied
expect 0 podman kube down /tmp/deployment.yaml
snapshot /tmp/now; same_file "settings stay when the pod ends" /tmp/applied /tmp/now
# shellcheck disable=SC2086
expect 0 in_container --cap-add=NET_ADMIN $WRITE -- restore --root /host
snapshot /tmp/now; same_file "the machine after restore" /tmp/before /tmp/now
finish
