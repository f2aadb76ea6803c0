#!/bin/bash
# run.sh - the tests of nicpin on real kernels, each in a virtual machine of its own.
#
#   run.sh [-v] [-b BINARY] [FILTER...]
#
#   -b BINARY   the nicpin to test; default $NICPIN, else target/release/nicpin is built
#   -v          print what passing tests print, too (the tables of interrupts by CPU)
#   -l          list the tests
#   FILTER      only tests whose name contains one of these, or is NAME with =NAME; those that end with .long run only with a filter
#
# $NICPIN_VM_JOBS machines run at once (default 2, or 1 on a single CPU); those of `random`, `pass`, `watch.wins` and `napi-threads` come last,
# one at a time, since they have limits of two seconds or count interrupts of single flows. The last line counts; the exit status is 0
# when nothing failed, 77 where machines cannot run at all and the tests are skipped. $EVENTS random events with the seed $SEED
# are made by the tests `random` (default 200, and a seed that differs each time); after each burst the plan has to be back
# within $WITHIN seconds (default 2, which needs a machine that does nothing else).
set -u
ALONE='^(napi-threads|random|pass|watch\.wins)\.'
SEED=${SEED:-$RANDOM} EVENTS=${EVENTS:-200} WITHIN=${WITHIN:-2}
VM_DIR=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TOP=$(cd "$VM_DIR/../.." && pwd)

# name, guest script, topology, further options of vm-run.sh; the slowest first. $LOGS/boot: a payload with which
# nicpin-watch.service starts at boot.
# shellcheck disable=SC2016
TESTS=(
  'watch             watch     fleet       --system bookworm+irqbalance+ethtool --payload "$LOGS/boot" --timeout 600 -- brief'
  "irqbalance        irqbalance two-node    --deb irqbalance --deb netcat-openbsd"
  "apply.wide        apply     wide"
  "refuse            refuse    four-node    --deb util-linux"
  "apply.four-node   apply     four-node"
  "events            events    four-node    --deb ethtool"
  "events.6.1        events    four-node    --deb ethtool --kernel bookworm"
  "undo.remapping    undo      two-node-ir  --deb strace"
  "undo.6.1          undo      two-node-ir  --deb strace --kernel bookworm"
  "traffic.four-node traffic   four-node    --deb ethtool"
  "measure           measure   two-node     --deb iperf3"
  "taught            taught    four-node    --deb util-linux"
  "apply.irregular   apply     irregular    --kernel bookworm"
  "apply.two-node    apply     two-node"
  "traffic.two-node  traffic   two-node     --deb ethtool"
  "traffic.one-queue traffic   single-queue --deb ethtool"
  "apply.6.1         apply     two-node     --kernel bookworm"
  "apply.remapping   apply     two-node-ir"
  "apply.flat        apply     flat"
  "apply.offline     apply     two-node     --kernel-args maxcpus=6"
  "hotplug           hotplug   four-node"
  "namespace         namespace four-node    --deb util-linux"
  "one-cpu           one-cpu   two-node     --kernel-args nosmp"
  "napi-threads.long napi-threads four-node --deb util-linux --deb strace --timeout 600"
  "napi-threads.6.1.long napi-threads four-node --deb util-linux --deb strace --timeout 600 --kernel bookworm"
  "channels          channels  four-node"
  "rss               rss       four-node    --deb ethtool --deb strace"
  "flow              flow      flow         --deb ethtool --deb python3.11-minimal --deb libpython3.11-minimal --deb libpython3.11-stdlib --timeout 600 --kernel-args ipv6.disable=0 -- 200"
  "flow.newest.long  flow      flow         --deb ethtool --deb python3.11-minimal --deb libpython3.11-minimal --deb libpython3.11-stdlib --timeout 1800 --kernel-args ipv6.disable=0 --kernel newest -- 2500"
  "flow.long         flow      flow         --deb ethtool --deb python3.11-minimal --deb libpython3.11-minimal --deb libpython3.11-stdlib --timeout 1800 --kernel-args ipv6.disable=0 -- 2500"
  "rss.6.1.long      rss       four-node    --deb ethtool --deb strace --kernel bookworm"
  "run               run       four-node"
  "nodes             nodes     four-node"
  "privileges        privileges two-node    --deb libcap2-bin"
  'watch.events.long watch     fleet       --system bookworm+irqbalance+ethtool --payload "$LOGS/boot" --timeout 900'
  'watch.rules.long  watch-rules fleet     --system bookworm+irqbalance+ethtool --payload "$LOGS/boot" --timeout 1200'
  'watch.wins.long   watch-wins fleet      --system bookworm+irqbalance+ethtool --payload "$LOGS/boot" --timeout 900'
  'watch.storm.long  watch-long  fleet      --system bookworm+irqbalance+ethtool --payload "$LOGS/boot" --timeout 1500'
  'watch.6.1.long    watch     fleet       --system bookworm+irqbalance+ethtool --payload "$LOGS/boot" --timeout 900 --kernel bookworm'
  'partitions        partitions small    --system bookworm+irqbalance --payload "$LOGS/boot" --timeout 600 -- brief'
  'partitions.long   partitions small    --system bookworm+irqbalance --payload "$LOGS/boot" --timeout 600'
  'partitions.6.1.long partitions small  --system bookworm+irqbalance --payload "$LOGS/boot" --timeout 600 --kernel bookworm'
  'random.long       random-events fleet --system bookworm+irqbalance+ethtool+python3 --payload "$LOGS/boot" --timeout 3600 -- "$SEED" "$EVENTS" "$WITHIN"'
  'random.6.1.long   random-events fleet --system bookworm+irqbalance+ethtool+python3 --payload "$LOGS/boot" --timeout 3600 --kernel bookworm -- "$SEED" "$EVENTS" "$WITHIN"'
  'random.newest.long random-events fleet --system bookworm+irqbalance+ethtool+python3 --payload "$LOGS/boot" --timeout 3600 --kernel newest -- "$SEED" "$EVENTS" "$WITHIN"'
  'random.1-apart.long random-events fleet --system bookworm+irqbalance+ethtool+python3 --payload "$LOGS/boot" --timeout 3600 -- "$SEED" 50 "$WITHIN" 1'
  'random.5-apart.long random-events fleet --system bookworm+irqbalance+ethtool+python3 --payload "$LOGS/boot" --timeout 3600 -- "$SEED" 50 "$WITHIN" 5'
  'pass.long         long-pass fleet       --system bookworm+irqbalance+ethtool+python3 --payload "$LOGS/boot" --timeout 3600 -- "$SEED" 5'
  'near.long         near      dies        --system bookworm+irqbalance --payload "$LOGS/boot" --timeout 600'
  'near.newest.long  near      dies        --system bookworm+irqbalance --payload "$LOGS/boot" --timeout 600 --kernel newest'
  "apply.5.10.long   apply     two-node     --kernel oldest"
  "undo.5.10.long    undo      two-node-ir  --deb strace --kernel oldest"
  "rss.5.10.long     rss       four-node    --deb ethtool --deb strace --kernel oldest"
  'watch.5.10.long   watch     fleet        --system bookworm+irqbalance+ethtool --payload "$LOGS/boot" --timeout 900 --kernel oldest'
  "apply.7.long      apply     two-node     --kernel newest"
  "undo.7.long       undo      two-node-ir  --deb strace --kernel newest"
  "events.7.long     events    four-node    --deb ethtool --kernel newest"
  "rss.7.long        rss       four-node    --deb ethtool --deb strace --kernel newest"
  "namespace.7.long  namespace four-node    --deb util-linux --kernel newest"
  'watch.7.long      watch     fleet        --system bookworm+irqbalance+ethtool --payload "$LOGS/boot" --timeout 900 --kernel newest'
  'partitions.7.long partitions small       --system bookworm+irqbalance --payload "$LOGS/boot" --timeout 600 --kernel newest'
  "napi-threads.7.long napi-threads four-node --deb util-linux --deb strace --timeout 600 --kernel newest"
  "walk.long         walk      small       --system bookworm+irqbalance+apt+prometheus+prometheus-node-exporter --timeout 900"
  "unit              unit      small       --system bookworm+irqbalance --timeout 480"
  "package           package   small       --system bookworm+irqbalance --timeout 480"
  "package.debian-13 package   small       --system trixie+irqbalance --timeout 480"
  'container         container small      --system bookworm+podman+crun+catatonit --payload "$LOGS/image" --timeout 600'
  'cloud-init        cloud-init small     --system bookworm+cloud-init+curl+apt --payload "$LOGS/cloud" --timeout 600'
  "vectors           vectors   vectors      --kernel-args irqaffinity=0"
  "vectors.two       vectors   vectors      --kernel-args irqaffinity=0-1"
  "isolated          isolated  two-node     --kernel-args isolcpus=domain,managed_irq,6-7\ nohz_full=6-7"
  "isolated.isolcpus isolated  two-node     --kernel-args isolcpus=6-7"
  "isolated.nohz     isolated  two-node     --kernel-args nohz_full=6-7"
  "isolated.boot-cpu isolated  two-node     --kernel-args nohz_full=0,6-7"
)

BINARY=${NICPIN:-} VERBOSE=0 FILTERS=()
while [ $# -gt 0 ]; do
  case $1 in
    -b) BINARY=${2:?-b takes a path}; shift 2;;
    -v) VERBOSE=1; shift;;
    -l) for t in "${TESTS[@]}"; do echo "${t%% *}"; done; exit 0;;
    -h|--help) sed -n '2,/^set -u/{/^set -u/d;s/^# \{0,1\}//;p}' "$0"; exit 0;;
    -*) echo "run.sh: unknown option $1 (try --help)" >&2; exit 64;;
    *) FILTERS+=("$1"); shift;;
  esac
done

chosen=()
for t in "${TESTS[@]}"; do
  [ ${#FILTERS[@]} -gt 0 ] || [[ ${t%% *} == *.long ]] || chosen+=("$t")
  for f in ${FILTERS[@]+"${FILTERS[@]}"}; do
    case $f in =*) [ "=${t%% *}" = "$f" ];; *) [[ ${t%% *} == *"$f"* ]];; esac && { chosen+=("$t"); break; }
  done
done
[ ${#chosen[@]} -gt 0 ] || { echo "run.sh: no test is named like ${FILTERS[*]}" >&2; exit 64; }

# ------------------------------------------------- can machines run here
cannot() {
  [ "$(id -u)" = 0 ] || { echo "not root"; return; }
  { : <> /dev/net/tun; } 2>/dev/null || { echo "/dev/net/tun cannot be opened (modprobe tun; mknod /dev/net/tun c 10 200)"; return; }
  unshare --net true 2>/dev/null || { echo "no network namespace can be made"; return; }
  [ "$(uname -m)" = x86_64 ] || { echo "the machines are x86_64, this host is $(uname -m)"; return; }
  command -v apt-get dpkg-deb >/dev/null || echo "apt-get and dpkg-deb are needed to fetch QEMU and kernels"
}
reason=$(cannot)
if [ -n "$reason" ]; then
  echo "########################################################################"
  echo "##  THE TESTS ON REAL KERNELS WERE NOT RUN: $reason"
  echo "########################################################################"
  echo "0 passed, 0 failed, ${#chosen[@]} skipped"
  exit 77
fi

# ------------------------------------------------------------ what they need
if [ -z "$BINARY" ]; then
  (cd "$TOP" && cargo build --release --locked --quiet) || exit 1
  BINARY=${CARGO_TARGET_DIR:-$TOP/target}/release/nicpin
fi
[ -x "$BINARY" ] || { echo "run.sh: $BINARY is no program" >&2; exit 1; }
LOGS=$(mktemp -d "${TMPDIR:-/tmp}/nicpin-vm-tests.XXXXXX") || exit 1
install -D -m 755 "$BINARY" "$LOGS/payload/nicpin"
install -m 644 "$VM_DIR/guest/assert.sh" "$VM_DIR/guest/watch-lib.sh" "$VM_DIR/guest/flow.py" "$VM_DIR/guest/random-events.py" "$VM_DIR/guest/long-pass.py" "$LOGS/payload/"
install -m 755 "$TOP/dist/irqbalance/nicpin-irqbalance-policy" "$LOGS/payload/"
install -m 644 "$TOP/dist/systemd/nicpin.service" "$LOGS/payload/"
for deb in "${CARGO_TARGET_DIR:-$TOP/target}"/dist/*.deb; do
  if [ -e "$deb" ]; then install -m 644 "$deb" "$LOGS/payload/nicpin.deb"; fi   # dist/build makes it
done
chmod 755 "$LOGS/payload"
units=$LOGS/boot/rootfs/etc/systemd/system
install -D -m 755 "$BINARY" "$LOGS/boot/rootfs/usr/bin/nicpin"
install -D -m 644 -t "$units" "$TOP"/dist/systemd/nicpin*.service "$VM_DIR/guest/boot-check.service"
install -d "$units/multi-user.target.wants"
ln -s ../nicpin-watch.service ../boot-check.service "$units/multi-user.target.wants/"

if printf '%s\n' "${chosen[@]}" | grep -q '^container '; then
  install -D -m 644 "$TOP/dist/kubernetes/nicpin.yaml" "$LOGS/image/nicpin.yaml"
  "$TOP/dist/image" "${CARGO_TARGET_DIR:-$TOP/target}"/dist/nicpin-*-linux-*.tar.gz "$LOGS/image/nicpin.oci.tar" || exit 1
fi
seed=$LOGS/cloud/rootfs/var/lib/cloud/seed/nocloud
mkdir -p "$seed" "$LOGS/cloud/rootfs/etc/cloud/cloud.cfg.d"
echo 'instance-id: guest' > "$seed/meta-data"
sed 's|"https://.*"|"file:///payload/nicpin.deb"|' "$TOP/dist/cloud-init/nicpin.yaml" > "$seed/user-data"
printf '%s\n' 'datasource_list: [NoCloud]' 'network: {config: disabled}' 'cloud_init_modules: [write-files]' \
  'cloud_config_modules: [runcmd]' 'cloud_final_modules: [scripts-user, final-message]' > "$LOGS/cloud/rootfs/etc/cloud/cloud.cfg.d/99.cfg"

declare -A NAME=() START=()
stop() { for pid in "${!NAME[@]}"; do kill "$pid" 2>/dev/null; done; wait; rm -rf "$LOGS"; exit "$1"; }
trap 'stop 130' INT; trap 'stop 143' TERM

for kernel in backports bookworm oldest newest; do
  if [ $kernel != backports ] && ! printf '%s\n' "${chosen[@]}" | grep -q -e "--kernel $kernel"; then continue; fi
  "$VM_DIR/vm-run.sh" --prepare --verbose --kernel "$kernel" > "$LOGS/prepare.log" 2>&1 || {
    cat "$LOGS/prepare.log"; rm -rf "$LOGS"
    echo "0 passed, ${#chosen[@]} failed"; exit 1
  }
done

# -------------------------------------------------------------------- run them
passed=0 failed=0
start() { # NAME SCRIPT TOPOLOGY OPTIONS...
  local name=$1 script=$2 topology=$3; shift 3
  "$VM_DIR/vm-run.sh" --topology "$topology" --script "$VM_DIR/guest/$script.sh" --payload "$LOGS/payload" \
    --log "$LOGS/$name" --timeout 240 "$@" > "$LOGS/$name.out" 2>&1 &
  NAME[$!]=$name START[$!]=$SECONDS
}
reap() {
  local pid status name log checks verdict=FAIL
  wait -n -p pid "${!NAME[@]}"; status=$?
  name=${NAME[$pid]} log=$LOGS/$name.out
  # A test that counted nothing has proven nothing.
  checks=$(sed -n '$s/^\([1-9][0-9]* checks, [0-9]* failed\)$/\1/p' "$log")
  if [ $status = 0 ] && [[ $checks == *", 0 failed" ]]; then verdict=ok; fi
  printf '%-4s %-18s %3d s  %s\n' "$verdict" "$name" $((SECONDS - START[$pid])) "${checks:-exit status $status}"
  if [ $verdict = ok ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  if [ $verdict != ok ] || [ $VERBOSE = 1 ]; then sed 's/^/     /' "$log"; fi
  unset "NAME[$pid]"
}
beside=() alone=()
for t in "${chosen[@]}"; do
  if [[ $t =~ $ALONE ]]; then alone+=("$t"); else beside+=("$t"); fi
done
run() { # JOBS TEST...
  local jobs=$1 t; shift
  for t in "$@"; do
    while [ ${#NAME[@]} -ge "$jobs" ]; do reap; done
    eval "start $t"
  done
  while [ ${#NAME[@]} -gt 0 ]; do reap; done
}
run "${NICPIN_VM_JOBS:-$(($(nproc) > 1 ? 2 : 1))}" "${beside[@]}"
run 1 "${alone[@]}"

if [ $failed = 0 ]; then rm -rf "$LOGS"; else echo "logs: $LOGS"; fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
