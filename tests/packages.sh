#!/bin/bash
# packages.sh - what is in the packages of dist/build, what their scripts do, and the crate that `cargo package` makes,
# installed from what it packed alone. That two builds give the same bytes is tested by release.sh.
#
#   packages.sh           the packages are left in target/dist
#
# Needs Debian with rpm, dnf, lintian, busybox-static and binutils, and unshare. The last line counts.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
export LC_ALL=C
TOP=$PWD
TARGET_DIR=${CARGO_TARGET_DIR:-$TOP/target}
OUT=$TARGET_DIR/dist
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# shellcheck disable=SC1091,SC2154
. tests/checks.sh

echo "--- the packages"
dist/build --deb --rpm --archive --target x86_64-unknown-linux-gnu
holds "SHA256SUMS" sh -c "cd '$OUT' && sha256sum --check --strict SHA256SUMS"
equal "one package of each kind" "deb gz rpm" "$(sed 's/.*\.//' "$OUT/SHA256SUMS" | sort | xargs)"
DEB=$(echo "$OUT"/*.deb) RPM=$(echo "$OUT"/*.rpm) TAR=$(echo "$OUT"/*.tar.gz)

echo "--- the binary"
CARGO_DIR=$(readlink -f "${CARGO_HOME:-$HOME/.cargo}")
mkdir -p "$WORK/tar" "$WORK/deb" "$WORK/empty"
tar --extract --strip-components=1 --directory="$WORK/tar" --file="$TAR"
dpkg-deb --extract "$DEB" "$WORK/deb"
BINARY=$WORK/tar/usr/bin/nicpin
holds "the same binary in deb and tar.gz" cmp "$BINARY" "$WORK/deb/usr/bin/nicpin"
equal "it asks for no loader and no library" "" "$(readelf --wide --program-headers --dynamic "$BINARY" | grep -E 'INTERP|NEEDED')"
holds "it can be loaded at any address" sh -c "readelf --wide --file-header '$BINARY' | grep -q 'Type: *DYN'"
equal "no path of this machine is in it" "" "$(grep -aoF -m 3 -e "$TOP/" -e "$CARGO_DIR" "$BINARY")"
cp "$BINARY" "$WORK/empty/nicpin"
cp -a fixtures/two-node "$WORK/empty/machine"
holds "it runs where there is no other file" unshare --map-root-user chroot "$WORK/empty" /nicpin apply --root /machine
equal "files there besides the machine's" "nicpin" "$(cd "$WORK/empty" && find . -type f -not -path './machine/*' -printf '%P\n')"

echo "--- the files of the packages"
units=$(cd dist/systemd && printf 'usr/lib/systemd/system/%s\n' *)
pages=$(cd "$WORK/tar" && find usr/share/man -type f)
docs=$(git ls-files docs fixtures/expected/two-socket-mlx4.svg | sed 's|^|usr/share/doc/nicpin/|')
common="etc/nicpin.toml
usr/bin/nicpin
usr/lib/nicpin/nicpin-irqbalance-policy
usr/share/bash-completion/completions/nicpin
usr/share/fish/vendor_completions.d/nicpin.fish
usr/share/nicpin/nicpin-metrics.conf
usr/share/doc/nicpin/CONTRIBUTING.md
usr/share/doc/nicpin/README.md
usr/share/doc/nicpin/SECURITY.md
usr/share/doc/nicpin/changelog.gz
usr/share/doc/nicpin/copyright
usr/share/doc/nicpin/examples/grafana-dashboard.json
usr/share/doc/nicpin/examples/nicpin.rules.yml
usr/share/doc/nicpin/notices/gcc.gz
usr/share/doc/nicpin/notices/glibc.gz
usr/share/doc/nicpin/notices/rust-library.html.gz
$units
$pages
$docs"
licences="usr/share/doc/nicpin/licenses/GPL-3
usr/share/doc/nicpin/licenses/LGPL-2.1
usr/share/zsh/site-functions/_nicpin"
list() { printf '%s\n' "$@" | sed '/^$/d' | sort -u; }
in_tree() { (cd "$1" && find . -type f -printf '%P\n' | sort); }
equal "files of the tar.gz" "$(list "$common" "$licences")" "$(in_tree "$WORK/tar")"
equal "files of the deb" "$(list "$common" usr/share/zsh/vendor-completions/_nicpin \
  usr/share/doc/nicpin/changelog.Debian.gz usr/share/lintian/overrides/nicpin)" "$(in_tree "$WORK/deb")"
equal "files of the rpm" "$(list "$common" "$licences")" \
  "$(rpm --query --package --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' "$RPM" | sed -n 's|^-[^ ]* /||p' | sort)"
holds "the pages nicpin and nicpin.toml" sh -c "ls '$WORK'/tar/usr/share/man/man[18]/nicpin.[18].gz '$WORK/tar/usr/share/man/man5/nicpin.toml.5.gz'"
holds "pages have no errors" sh -c "zcat '$WORK'/tar/usr/share/man/man*/* | mandoc -T lint -W error"
equal "modes and owners in the deb" "-rw-r--r-- root/root
-rwxr-xr-x root/root
drwxr-xr-x root/root" "$(dpkg-deb --contents "$DEB" | awk '{print $1, $2}' | sort -u)"
equal "what may be executed" "usr/bin/nicpin usr/lib/nicpin/nicpin-irqbalance-policy" \
  "$(cd "$WORK/deb" && find . -type f -perm /111 -printf '%P\n' | sort | xargs)"
equal "configuration files of the deb" "/etc/nicpin.toml" "$(dpkg-deb --ctrl-tarfile "$DEB" | tar -xO ./conffiles)"
equal "configuration files of the rpm" "/etc/nicpin.toml" "$(rpm --query --package --configfiles "$RPM")"
equal "what the deb depends on" "" "$(dpkg-deb --field "$DEB" Depends Pre-Depends Recommends)"
equal "what the rpm depends on" "" "$(rpm --query --package --requires "$RPM" | grep -vE '^rpmlib\(|^config\(|^/bin/sh$')"

echo "--- licences"
cargo tree --locked --target x86_64-unknown-linux-gnu --edges normal,no-proc-macro --prefix none --format '{p}' |
  awk '$1 != "nicpin" && NF {sub(/^v/, "", $2); print $1 "-" $2}' | sort -u >"$WORK/crates"
sed -n 's/^\(Files:\)\{0,1\} \([a-z0-9_-]*-[0-9][^ ]*\)$/\2/p' "$WORK/tar/usr/share/doc/nicpin/copyright" |
  grep -v '^rust-library-' | sort -u >"$WORK/named"
equal "the crates that are named" "$(cat "$WORK/crates")" "$(cat "$WORK/named")"
at_least_forty() { [ "$(wc -l <"$WORK/crates")" -ge 40 ]; }
holds "they are at least 40" at_least_forty

echo "--- lintian"
# Root would only get a warning.
holds "no errors, and no warnings but those that the package explains" \
  lintian --no-cfg --allow-root --profile debian --fail-on error,warning "$DEB"
lintian --no-cfg --allow-root --profile debian --show-overrides "$DEB"

echo "--- the rpm in a root of its own, by dnf"
# A shell, which a package provides, and a systemctl that records what it is asked
ROOT=$WORK/root
mkdir -p "$ROOT"/{bin,dev,usr/bin,run/systemd/system,run/nicpin}
: >"$ROOT/dev/null"
cp "$(command -v busybox)" "$ROOT/bin/sh"
for tool in rm echo; do ln -s sh "$ROOT/bin/$tool"; done
cat >"$ROOT/usr/bin/systemctl" <<'END'
#!/bin/sh
echo "$*" >>/asked
END
chmod 755 "$ROOT/usr/bin/systemctl"
printf '%s\n' 'Name: shell' 'Version: 1' 'Release: 1' 'Summary: A shell' 'License: GPL-2.0-only' 'BuildArch: noarch' \
  'Provides: /bin/sh' %description %files >"$WORK/shell.spec"
rpmbuild -bb --quiet --define "_topdir $WORK/shell" --define "_rpmdir $WORK" --define "_rpmfilename shell.rpm" "$WORK/shell.spec"
in_root() { unshare --map-root-user rpm --root "$ROOT" --nosignature "$@"; }
by_dnf() { unshare --map-root-user dnf --installroot="$ROOT" --releasever=1 --disablerepo='*' --nogpgcheck --noplugins --assumeyes "$@"; }
asked() { cat "$ROOT/asked" 2>/dev/null; rm -f "$ROOT/asked"; }
holds "dnf install" by_dnf install "$WORK/shell.rpm" "$RPM"
equal "what the install asks of systemd" "daemon-reload" "$(asked)"
holds "rpm --verify" in_root --verify nicpin
echo '# mine' >>"$ROOT/etc/nicpin.toml"
holds "rpm --upgrade" in_root --upgrade --force "$RPM"
equal "what an upgrade asks of systemd" "daemon-reload" "$(asked | sort -u)"
equal "the policy after an upgrade" "# mine" "$(tail -n 1 "$ROOT/etc/nicpin.toml")"
touch "$ROOT/run/nicpin/state"
holds "dnf remove" by_dnf remove nicpin
equal "what removal asks of systemd" "$(cd dist/systemd && for unit in ./*.service; do
  echo "--no-reload disable --now ${unit#./}"; done)
daemon-reload" "$(asked)"
equal "what removal leaves" "etc/nicpin.toml.rpmsave" "$(cd "$ROOT" && find . -name '*nicpin*' -printf '%P\n')"

echo "--- the archive, by the lines of docs/install.md, in a root that has some of its directories"
ROOT=$WORK/unpacked
mkdir -p "$ROOT"/{etc,run/nicpin,usr/bin,usr/lib,usr/share/man/man8,usr/share/doc}
(cd "$ROOT" && find . | sort | grep -v ./run/nicpin) >"$WORK/tree"
# shellcheck disable=SC2016
sed -n 's/^| archive | `\(.*\)` |$/\1/p' docs/install.md >"$WORK/lines"
sed -n 's/^    \(tar --list .*\|sudo rm -r .*\)/\1/p' docs/install.md >>"$WORK/lines"
equal "lines that install and remove it" 3 "$(wc -l <"$WORK/lines")"
sed -i "s| sudo | |; s|^sudo ||; s|=nicpin-[^ ]*gz|='$TAR'|; s|--directory=/|--directory=$ROOT|; s|#||; s#sed 's|^\[^/\]\*||'#sed 's|^[^/]*|$ROOT|'#; s# /\(usr\|run\)# $ROOT/\1#g" "$WORK/lines"
holds "they succeed" sh -ex "$WORK/lines"
equal "files that are left" "" "$(cd "$ROOT" && find . -not -type d)"
equal "directories with its name" "" "$(cd "$ROOT" && find . -name '*nicpin*')"

echo "--- the crate"
# With the dependencies of the debug build, so that only nicpin is compiled
cargo package --list --allow-dirty --locked >"$WORK/packed"
equal "files of the crate that are not sources, and not of use" "" \
  "$(grep -vE '^(src|docs|examples)/|^dist/|^(Cargo\.(toml|toml\.orig|lock)|LICENSE|[A-Z]+\.md|\.cargo_vcs_info\.json)$' "$WORK/packed")"
holds "the example for those who embed it is packed" grep -qx 'examples/embed.rs' "$WORK/packed"
CARGO_TARGET_DIR=$TARGET_DIR cargo package --quiet --allow-dirty --no-verify --locked --offline
CRATE=$(echo "$TARGET_DIR"/package/nicpin-*.crate)
mkdir "$WORK/crate"
tar --extract --gzip --strip-components=1 --directory="$WORK/crate" --file="$CRATE"
CARGO_TARGET_DIR=$TARGET_DIR holds "cargo install --locked, offline, from the crate alone" \
  cargo install --debug --quiet --locked --offline --path "$WORK/crate" --root "$WORK/installed"
holds "what it installed plans a machine" "$WORK/installed/bin/nicpin" plan --root fixtures/two-node

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
