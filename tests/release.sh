#!/bin/bash
# release.sh - dist/release from two directories, on two days: the same sums, signed; the sources build, install and pass the
# README's two commands where there is nothing but Debian 13's own Rust and no network. tests/vm/run.sh runs the image (`container`).
#
# Needs root, Debian with mmdebstrap, rpm, buildah, gpg and faketime, cargo-cyclonedx, and unshare. The Debian is kept below
# ${NICPIN_RELEASE_CACHE:-~/.cache/nicpin-release}. The last line counts. Ends with 77 where it cannot run: not root, or no
# namespaces.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
CACHE=${NICPIN_RELEASE_CACHE:-$HOME/.cache/nicpin-release}
if [ "$(id -u)" != 0 ] || ! unshare --mount --net --pid --fork true 2>/dev/null; then
  echo "########################################################################"
  echo "##  release.sh WAS NOT RUN: it needs root and namespaces"
  echo "########################################################################"
  exit 77
fi
WORK=$(mktemp -d)
export GNUPGHOME=$WORK/gnupg
trap 'gpgconf --kill all; rm -rf "$WORK"' EXIT
mkdir -m 700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key release@example.org
OUT=${CARGO_TARGET_DIR:-$PWD/target}/release-test

# shellcheck disable=SC1091,SC2154
. tests/checks.sh

echo "--- two releases"
# Clones have only what is committed.
git clone --quiet . "$WORK/one"
git clone --quiet . "$WORK/another place"
(cd "$WORK/one" && CARGO_TARGET_DIR=$WORK/target dist/release --target x86_64-unknown-linux-gnu --out "$OUT")
rm -rf "$WORK/target"
# It is two days later for all tools that start no compiler, which hangs with faketime and asks for no time.
mkdir "$WORK/later"
for tool in install touch gzip tar rpmbuild dpkg-deb git; do
  printf '#!/bin/sh\nexec faketime -f +2d %s "$@"\n' "$(command -v $tool)" >"$WORK/later/$tool"
  chmod 755 "$WORK/later/$tool"
done
# In a directory with a longer name, with another umask and time zone.
(cd "$WORK/another place" && umask 077 && TZ=Pacific/Auckland PATH=$WORK/later:$PATH \
  dist/release --target x86_64-unknown-linux-gnu --sign release@example.org --out "$WORK/second")
equal "both have the same sums" "$(cat "$OUT/SHA256SUMS")" "$(cat "$WORK/second/SHA256SUMS")"
holds "the sums are signed" gpg --verify "$WORK/second/SHA256SUMS.asc" "$WORK/second/SHA256SUMS"
rm -rf "$WORK/second" "$WORK/another place"
equal "one file of each kind" "deb json rpm tar tar.gz tar.gz" \
  "$(sed 's/.*\(\.tar\.gz\)$/\1/;s/.*\.\([a-z]*\)$/\1/;s/^gz$/tar.gz/' "$OUT/SHA256SUMS" | sort | xargs)"
VERSION=$(cargo pkgid --locked); VERSION=${VERSION##*[#@]}
touch "$WORK/one/change"
refused() { ! (cd "$WORK/one" && dist/release) >"$WORK/said" 2>&1 && grep -q 'has changes' "$WORK/said"; }
holds "a work tree with changes is refused" refused
rm "$WORK/one/change"
tagged() { git -C "$WORK/one" tag "v9$VERSION"; ! (cd "$WORK/one" && dist/release) >"$WORK/said" 2>&1 && grep -q 'is tagged' "$WORK/said"; }
holds "a tag that is not the version is refused" tagged
equal "crates in the list of contents" "yes" \
  "$(python3 -c 'import json, sys; names = {c["name"] for c in json.load(open(sys.argv[1]))["components"]}; print("yes" if {"nix", "clap", "serde"} <= names else names)' "$OUT/nicpin-$VERSION.cdx.json")"

echo "--- the sources in a Debian 13 without network"
PACKAGES=cargo,rustc,gcc,libc6-dev,util-linux,python3,rpm
if [ "$(cat "$CACHE/.done" 2>/dev/null)" != "$PACKAGES" ]; then
  rm -rf "$CACHE"
  mkdir -p "$CACHE"
  mmdebstrap --quiet --variant=minbase --include=$PACKAGES trixie "$CACHE/root"
  echo "$PACKAGES" >"$CACHE/.done"
fi
# Taken from CONTRIBUTING.md, as they stand there
commands=$(sed -n '/^## Build/,/^## /s/^    \([^#]*[^# ]\).*/\1/p' CONTRIBUTING.md)
equal "commands of CONTRIBUTING.md" 3 "$(wc -l <<<"$commands")"
readme=$(sed -n 's/^    \(cargo .*\)/\1/p' README.md | head -n 2)
equal "the second of the README" "cargo test" "$(tail -n 1 <<<"$readme")"
mkdir -p "$WORK"/{upper,work,root,home}
tar --extract --gzip --directory="$WORK/home" --file="$OUT/nicpin-$VERSION.tar.gz"
chown -R 1000:1000 "$WORK/home"
cat >"$WORK/inside" <<END
set -euo pipefail
mount -t overlay overlay -o "lowerdir=$CACHE/root,upperdir=$WORK/upper,workdir=$WORK/work" "$WORK/root"
cd "$WORK/root"
mkdir -p home/user
mount --bind "$WORK/home" home/user
mount -t proc proc proc
mount -t tmpfs tmpfs tmp && chmod 1777 tmp
mount -t tmpfs tmpfs dev -o mode=755 && mkdir dev/shm dev/pts && chmod 1777 dev/shm
for node in null zero full random urandom tty; do touch dev/\$node && mount --bind /dev/\$node dev/\$node; done
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts && ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
as_user() { chroot . setpriv --reuid=1000 --regid=1000 --clear-groups env -i HOME=/home/user TERM=dumb PATH=/usr/bin:/bin sh -euc "cd /home/user/nicpin-$VERSION; \$1"; }
as_user "cargo --version; ${commands//$'\n'/; }; ${readme//$'\n'/; }"
cp home/user/nicpin-$VERSION/target/dist/*.deb root/
chroot . dpkg --install "root/nicpin_$VERSION-1_amd64.deb"
as_user "/usr/bin/nicpin plan --root fixtures/two-node"
chroot . dpkg --purge nicpin
find . -xdev -name '*nicpin*' -not -path './home/*' -not -path './root/*' | sed 's/^/LEFT /'
END
built() { unshare --mount --net --pid --fork --propagation private bash "$WORK/inside" >"$WORK/log" 2>&1; }
holds "built by the commands of CONTRIBUTING.md, tested by those of the README, installed, used and removed" built
grep -E '^cargo |^test result|^test .* FAILED|panicked at|  nicpin.*\.(deb|rpm|gz)$' "$WORK/log" || tail -n 40 "$WORK/log"
equal "what is left" "" "$(grep '^LEFT' "$WORK/log")"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
