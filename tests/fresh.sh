#!/bin/bash
# fresh.sh - the README's two commands on a machine that has nothing but Rust: in a root of a minimal Debian and a C
# compiler, with the toolchain and the crates of this machine (read-only), without network, by an unprivileged user.
#
# Needs root, mmdebstrap and unshare. The root is kept below ${NICPIN_FRESH_CACHE:-~/.cache/nicpin-fresh}. The last line of the
# output counts tests. Ends with 77 where it cannot run: not root, or no mount namespace.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
CACHE=${NICPIN_FRESH_CACHE:-$HOME/.cache/nicpin-fresh}
if [ "$(id -u)" != 0 ] || ! unshare --mount --net --pid --fork true 2>/dev/null; then
  echo "########################################################################"
  echo "##  fresh.sh WAS NOT RUN: it needs root and namespaces"
  echo "########################################################################"
  exit 77
fi

if [ ! -e "$CACHE/.done" ]; then
  rm -rf "$CACHE"
  mkdir -p "$CACHE"
  # Debian as this machine's apt knows it; mmdebstrap takes its sources.
  mmdebstrap --quiet --variant=minbase --include=gcc,libc6-dev,util-linux bookworm "$CACHE/root"
  touch "$CACHE/.done"
fi

# The README's commands, as they stand there.
mapfile -t commands < <(sed -n 's/^    \(cargo .*\)/\1/p' README.md | head -2)
if [ "${#commands[@]}" != 2 ] || [[ ${commands[1]} != "cargo test"* ]]; then
  echo "fresh.sh: README.md has not its two commands" >&2
  exit 1
fi

cargo fetch --locked --quiet
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir -p "$WORK"/{home/project,upper,work,root}
git ls-files -z | tar --create --null --files-from=- --ignore-failed-read 2>/dev/null | tar --extract --directory="$WORK/home/project"
SYSROOT=$(rustc --print sysroot)
CRATES=${CARGO_HOME:-$HOME/.cargo}/registry
chown -R 1000:1000 "$WORK/home"
# What is in the root stays as it was: the changes go to a layer of their own.
cat >"$WORK/inside" <<END
set -euo pipefail
mount -t overlay overlay -o "lowerdir=$CACHE/root,upperdir=$WORK/upper,workdir=$WORK/work" "$WORK/root"
cd "$WORK/root"
mkdir -p home/user rust
mount --bind "$WORK/home" home/user
mount --bind "$SYSROOT" rust && mount -o remount,bind,ro rust
mkdir -p home/user/.cargo/registry
mount --bind "$CRATES" home/user/.cargo/registry && mount -o remount,bind,ro home/user/.cargo/registry
chown 1000:1000 home/user/.cargo
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs tmp && chmod 1777 tmp
mount -t tmpfs tmpfs dev -o mode=755 && mkdir dev/shm dev/pts && chmod 1777 dev/shm
for node in null zero full random urandom tty; do touch dev/\$node && mount --bind /dev/\$node dev/\$node; done
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts && ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
exec chroot . setpriv --reuid=1000 --regid=1000 --clear-groups env -i HOME=/home/user TERM=dumb \
  PATH=/rust/bin:/usr/bin:/bin CARGO_NET_OFFLINE=true sh -euc 'cd /home/user/project
    ${commands[0]}
    ${commands[1]}'
END
unshare --mount --net --pid --fork --propagation private bash "$WORK/inside" 2>&1 | tee "$WORK/log" | grep -vE '^test .* ok$'
counted() { awk -v what="$1;" '/^test result:/ {for (i = 2; i <= NF; i++) if ($i == what) n += $(i - 1)} END {print n + 0}' "$WORK/log"; }
echo "$(counted passed) passed, $(counted failed) failed, $(counted ignored) skipped"
