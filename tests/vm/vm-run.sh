#!/bin/bash
# vm-run.sh - boot a real Linux kernel in QEMU (software emulation) with a named topology of NUMA nodes and network
# cards, run one script in it as root, print what the script prints, and exit with the script's status.
#
#   vm-run.sh [options] --script GUEST_SCRIPT [-- ARGS...]
#
#   --topology NAME|FILE   a file from topologies/ (default two-node), or a path
#   --script FILE          run in the guest as root; "#!/bin/sh" is busybox ash
#   --payload PATH         file, or directory whose contents, go to /payload/ (repeatable). Dynamic ELF files get
#                          their libraries copied along; static ones need nothing.
#   --deb PKG              put a Debian package's files, and the libraries its programs need, into the guest
#                          (repeatable)
#   --kernel-args STR      appended to the kernel command line
#   --kernel SUITE         bookworm (6.1), backports (6.12, default), cloud (6.12 cloud flavour: no nvme, igb,
#                          e1000e, e1000), oldest (5.10, of bullseye) or newest (7.x, of trixie-backports)
#   --qemu SUITE           backports (10.0, default) or bookworm (7.2: no igb)
#   --out DIR              unpack what the guest script left in /out there
#   --log DIR              keep console.log, out.log, ctl.log, qemu.cmd there
#   --timeout SEC          wall limit for the whole guest (default 300)
#   --no-up                leave the cards down (default: all set up, no address)
#   --system SUITE[+PKG..] boot a Debian root filesystem with its own systemd and udev, and these packages; the script
#                          runs after multi-user.target. Built once into the cache by system-image.sh, which needs
#                          mmdebstrap. What the guest writes is thrown away when QEMU ends: after `: > /run/rebooting;
#                          systemctl reboot` it is there, and the script runs again
#   --qemu-arg ARG         one more QEMU argument (repeatable)
#   --verbose              kernel console to stderr, and timings
#   --prepare              only fill the cache
#   --list                 list topologies
#
# Exit status: the guest script's; 124 = timeout; 125 = the harness failed (no cache, QEMU refused, kernel panic,
# the guest never reported a status).
#
# Needs: Debian 12 (bash, coreutils, util-linux, dpkg, apt, tar, grep), root, and /dev/net/tun. Nothing is
# installed: packages are unpacked into ${NICPIN_VM_CACHE:-~/.cache/nicpin-vm}. The archive is the one that the
# machine's apt is set up for; NICPIN_VM_MIRROR and NICPIN_VM_SECURITY override it. QEMU runs in a network namespace
# of its own, which holds the taps and bridges and is gone when QEMU ends.
#
# Inside the guest: /payload, /out (comes back with --out), /harness/lib.sh (helpers), env NICS, TOPOLOGY. Serial
# lines: ttyS0 console, ttyS1 the script's output, ttyS2 control (READY/SCRIPT/STATUS), ttyS3 tar of /out.
#
# Accelerator: always TCG with thread=single. Round-robin vCPUs boot 3x (16 vCPU) to 15x (64 vCPU) faster than
# thread=multi on a 2-core host, because halted vCPUs then cost nothing. /dev/kvm is never used (it may exist and
# open but be unable to run firmware).
set -u
VM_DIR=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
CACHE=${NICPIN_VM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/nicpin-vm}

TOPO=two-node SCRIPT='' KARGS='' KSUITE=backports QSUITE=backports OUT='' LOG='' TIMEOUT=300
UP=1 VERBOSE=0 PREPARE=0 SYSTEM='' PAYLOAD=() DEBS=() QEXTRA=() SARGS=() OVERLAYS=()
die() { echo "vm-run: $*" >&2; exit 125; }
say() { [ "$VERBOSE" = 0 ] || echo "vm-run: $*" >&2; }
while [ $# -gt 0 ]; do
  case $1 in
    --topology) TOPO=$2; shift 2;;
    --script) SCRIPT=$2; shift 2;;
    --payload) PAYLOAD+=("$2"); shift 2;;
    --deb) DEBS+=("$2"); shift 2;;
    --kernel-args) KARGS=$2; shift 2;;
    --kernel) KSUITE=$2; shift 2;;
    --qemu) QSUITE=$2; shift 2;;
    --out) OUT=$2; shift 2;;
    --log) LOG=$2; shift 2;;
    --timeout) TIMEOUT=$2; shift 2;;
    --no-up) UP=0; shift;;
    --system) SYSTEM=$2; shift 2;;
    --qemu-arg) QEXTRA+=("$2"); shift 2;;
    --verbose) VERBOSE=1; shift;;
    --prepare) PREPARE=1; shift;;
    --list) for f in "$VM_DIR"/topologies/*.sh; do basename "$f" .sh; done; exit 0;;
    -h|--help) sed -n '2,/^set -u/{/^set -u/d;s/^# \{0,1\}//;p}' "$0"; exit 0;;
    --) shift; SARGS=("$@"); break;;
    *) die "unknown option: $1 (try --help)";;
  esac
done

# ---------------------------------------------------------------- the cache
# shellcheck source=tests/vm/cache.sh
. "$VM_DIR/cache.sh"
mkdir -p "$CACHE" || die "cannot make $CACHE"
exec 9>"$CACHE/lock"; flock 9        # one filler at a time
prep_qemu "$QSUITE"
prep_kernel "$KSUITE"
prep_base "$KSUITE"
for p in ${DEBS[@]+"${DEBS[@]}"}; do prep_package "$p"; done
[ -z "$SYSTEM" ] || prep_system "$SYSTEM"
flock -u 9; exec 9>&-
[ $PREPARE = 0 ] || { echo "cache ready in $CACHE: QEMU $QSUITE, kernel $KV"; exit 0; }

# ------------------------------------------------------------- the topology
[ -n "$SCRIPT" ] || die "--script is needed (try --help)"
[ -f "$SCRIPT" ] || die "no such script: $SCRIPT"
RUN=$(mktemp -d "${TMPDIR:-/tmp}/nicpin-vm.XXXXXX") || die "mktemp failed"
QPID=''
# shellcheck disable=SC2317  # the trap calls it
cleanup() { [ -z "$QPID" ] || { kill "$QPID" && wait "$QPID"; } 2>/dev/null; rm -rf "$RUN"; }
trap cleanup EXIT; trap 'exit 130' INT; trap 'exit 143' TERM

# shellcheck source=tests/vm/topology.sh
. "$VM_DIR/topology.sh"
[ -f "$TOPO" ] || TOPO=$VM_DIR/topologies/$TOPO.sh
[ -f "$TOPO" ] || die "no topology $TOPO"
# shellcheck disable=SC1090
. "$TOPO"

# ------------------------------------- this run's part of the initramfs
r=$RUN/root; mkdir -p "$r/payload" "$r/harness"
for x in ${PAYLOAD[@]+"${PAYLOAD[@]}"}; do
  if [ -d "$x" ]; then cp -a "$x/." "$r/payload/"; elif [ -e "$x" ]; then cp -aL "$x" "$r/payload/"; else die "no payload $x"; fi
done
while IFS= read -r e; do ! is_dynamic "$e" || copy_libs "" "$e" "$r"; done < <(find "$r/payload" -type f)
install -m 755 "$VM_DIR/guest-init.sh" "$r/init"
install -m 755 "$SCRIPT" "$r/harness/script"
cp "$VM_DIR/guest-lib.sh" "$r/harness/lib.sh"
if [ -n "$SYSTEM" ]; then
  cp "$VM_DIR/guest-system.sh" "$r/harness/system"
  cp "$VM_DIR/guest-system-start.sh" "$r/harness/start"
  KARGS="systemd.show_status=0 $KARGS"
  QA+=(-drive "if=none,id=root,format=raw,file=$IMAGE,snapshot=on,cache=unsafe")
  QA+=(-device "virtio-blk-pci,bus=pcie.0,drive=root,num-queues=1,romfile=")
fi
printf '%s' "$NIC_MAP" > "$r/harness/nics"
{
  printf 'TOPOLOGY=%q\nNIC_UP=%q\nMODULES=%q\nset --' "$(basename "$TOPO" .sh)" "$UP" "$NIC_MODS"
  for a in ${SARGS[@]+"${SARGS[@]}"}; do printf " '%s'" "${a//\'/\'\\\'\'}"; done
  echo
} > "$r/harness/env"
pack "$r" > "$RUN/run.cpio"
cat "$BASE" ${OVERLAYS[@]+"${OVERLAYS[@]}"} "$RUN/run.cpio" > "$RUN/initrd"
rm -rf "$r" "$RUN/run.cpio"

# ------------------------------------------------------------------ launch
for w in $WIRES; do
  # shellcheck disable=SC2016
  printf '#!/bin/sh\n%q brctl addif br-%s "$1"; exec %q ip link set dev "$1" up\n' "$BB" "$w" "$BB" > "$RUN/ifup-$w"
  chmod 755 "$RUN/ifup-$w"
done
cat > "$RUN/launch" <<EOF
#!/bin/sh
# runs inside the private network namespace
set -e
$BB ip link set dev lo up
for w in $WIRES; do $BB brctl addbr br-\$w; $BB ip link set dev br-\$w up; done
exec "\$@"
EOF
chmod 755 "$RUN/launch"
# no splash, no option ROMs, no default devices; printk to ttyS0 only
CMDLINE="console=ttyS0 panic=-1 quiet tsc=reliable lpj=8000000 no_timer_check mitigations=off nowatchdog"
CMDLINE+=" rcupdate.rcu_expedited=1 random.trust_cpu=on cryptomgr.notests audit=0 nokaslr ipv6.disable=1"
# The guest reads this machine's TSC. Measured by the guest beside other work, its clock may run several times too fast.
KHZ=$(python3 - 2>/dev/null <<'EOF'
import ctypes, mmap, time
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("0f3148c1e2204809d0c3"))     # rdtsc; shl rdx, 32; or rax, rdx; ret
ticks = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
begun, since = ticks(), time.monotonic_ns()
time.sleep(0.2)
print((ticks() - begun) * 1_000_000 // (time.monotonic_ns() - since))
EOF
)
CMDLINE+="${KHZ:+ tsc_early_khz=$KHZ} 8250.nr_uarts=4${KARGS:+ $KARGS}"
cmd=("$QROOT/usr/bin/qemu-system-x86_64" -L "$QROOT/usr/share/qemu" -L "$QROOT/usr/share/seabios"
  -nodefaults -no-user-config -display none -name nicpin-vm
  -machine "q35,usb=off,vmport=off,smm=off" -accel "tcg,thread=single" -cpu Nehalem -m "${MEM}M"
  -kernel "$KDIR/vmlinux" -initrd "$RUN/initrd" -append "$CMDLINE")
i=0
for s in "console 0x3f8 4" "out 0x2f8 3" "ctl 0x3e8 5" "tar 0x2e8 7"; do
  read -r name port irq <<<"$s"
  : > "$RUN/$name.log"
  cmd+=(-chardev "file,id=$name,path=$RUN/$name.log" -device "isa-serial,chardev=$name,index=$i,iobase=$port,irq=$irq")
  i=$((i + 1))
done
[ -n "$SYSTEM" ] || cmd+=(-no-reboot)
cmd+=(-device "isa-debug-exit,iobase=0x501,iosize=1" "${QA[@]}" ${QEXTRA[@]+"${QEXTRA[@]}"})
printf '%q ' "${cmd[@]}" > "$RUN/qemu.cmd"
unset LD_LIBRARY_PATH
export QEMU_MODULE_DIR=$QROOT/usr/lib/x86_64-linux-gnu/qemu   # 7.2 has TCG as a module
t0=$EPOCHREALTIME
timeout --kill-after=5 "$TIMEOUT" unshare --net "$RUN/launch" "$QLD" --library-path "$QLIB" "${cmd[@]}" \
  </dev/null >"$RUN/qemu.log" 2>&1 & QPID=$!
since() { awk -v a="$t0" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.2f", b - a}'; }
follow() { tail -n +1 -f -s 0.05 --pid="$QPID" "$RUN/$1.log" 2>/dev/null; }
follow out & T1=$!
[ $VERBOSE = 0 ] || follow console >&2 &
follow ctl | while IFS= read -r l; do echo "$(since) $l"; done > "$RUN/ctl.times" & T2=$!
wait "$QPID"; qrc=$?; QPID=''; total=$(since)
wait "$T1" "$T2" 2>/dev/null
say "timings (s since launch): $(tr '\n' ';' < "$RUN/ctl.times") off $total"
echo "$total OFF" >> "$RUN/ctl.times"
if [ -n "$LOG" ]; then mkdir -p "$LOG"; cp "$RUN"/{console.log,out.log,ctl.log,ctl.times,qemu.log,qemu.cmd} "$LOG/"; fi
if [ -n "$OUT" ] && [ -s "$RUN/tar.log" ]; then
  mkdir -p "$OUT"; tar -xzf "$RUN/tar.log" -C "$OUT" --no-same-owner || die "bad tar from the guest"
fi
rc=$(sed -n 's/^STATUS \([0-9]*\).*/\1/p' "$RUN/ctl.log" | tail -1)
[ -z "$rc" ] || exit "$rc"
{ echo "vm-run: the guest gave no status (qemu/timeout exit $qrc after $total s)"; tail -3 "$RUN/qemu.log"; tail -15 "$RUN/console.log"; } >&2
case $qrc in 124|137) exit 124;; *) exit 125;; esac
