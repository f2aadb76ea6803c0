# shellcheck shell=bash
# The cache of vm-run.sh: QEMU, kernels, the base initramfs and packages for the guest, unpacked below $CACHE and
# never installed. Sourced; sets QROOT, QLD, BB, KDIR, KV, BASE, OVERLAYS and IMAGE.

KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
APT=(-o "Dir::Etc::sourcelist=$CACHE/apt/sources.list" -o "Dir::Etc::sourceparts=$CACHE/apt/none"
     -o "Dir::Etc::preferencesparts=$CACHE/apt/none" -o "Dir::State::lists=$CACHE/apt/lists"
     -o "Dir::Cache=$CACHE/apt/cache" -o APT::Sandbox::User=root -o APT::Install-Recommends=false)

# The archive that this machine's own apt uses for a release.
apt_site() {
  # shellcheck disable=SC2016  # apt expands these
  apt-get indextargets --format '$(RELEASE) $(SITE)' 'Created-By: Packages' 2>/dev/null |
    awk -v r="$1" '$1 == r && !n++ {print $2}'
}

apt_ready=0
apt_prep() {
  [ $apt_ready = 0 ] || return 0
  local site=${NICPIN_VM_MIRROR:-} security=${NICPIN_VM_SECURITY:-}
  mkdir -p "$CACHE/apt/none" "$CACHE/apt/lists/partial" "$CACHE/apt/cache/archives/partial"
  if [ -z "$site" ] || [ -z "$security" ]; then
    [ -n "$(apt_site bookworm)" ] || apt-get update -qq >/dev/null 2>&1   # the list of sites comes with the first update
    site=${site:-$(apt_site bookworm)} security=${security:-$(apt_site bookworm-security)}
    [ -n "$site" ] || die "apt is set up for no bookworm archive; set NICPIN_VM_MIRROR and NICPIN_VM_SECURITY"
  fi
  {
    echo "deb [signed-by=$KEYRING] $site bookworm main"
    [ -z "$security" ] || echo "deb [signed-by=$KEYRING] $security bookworm-security main"
    echo "deb [signed-by=$KEYRING] $site bookworm-backports main"
  } > "$CACHE/apt/sources.list"
  apt-get "${APT[@]}" update -qq >"$CACHE/apt/update.log" 2>&1 ||
    { cat "$CACHE/apt/update.log" >&2; die "apt-get update failed"; }
  apt_ready=1
}

# fetch_deb PKG[=VERSION]: download one package, print its path
fetch_deb() {
  apt_prep
  mkdir -p "$CACHE/debs"
  local p=${1%%=*} f
  ( cd "$CACHE/debs" && rm -f "$p"_*.deb && apt-get "${APT[@]}" download -qq "$1" ) >&2 || die "cannot download $1"
  for f in "$CACHE/debs/$p"_*.deb; do echo "$f"; done
}

# closure ROOT SUITE PKG...: unpacks PKG and everything that it depends on in ROOT; resolved against an empty system, so
# that the result does not depend on this one
closure() {
  local root=$1 suite=$2 d; shift 2
  apt_prep
  mkdir -p "$CACHE/apt/empty"; : > "$CACHE/apt/empty/status"
  rm -rf "$root.tmp"; mkdir -p "$root.tmp/.debs/partial"
  apt-get "${APT[@]}" -o "Dir::State::status=$CACHE/apt/empty/status" -o "Dir::Cache::archives=$root.tmp/.debs" \
    -t "$suite" install -y -qq --download-only "$@" >"$CACHE/apt/closure.log" 2>&1 ||
    { tail -5 "$CACHE/apt/closure.log" >&2; die "cannot fetch $*"; }
  for d in "$root.tmp"/.debs/*.deb; do dpkg-deb -x "$d" "$root.tmp" || die "cannot unpack $d"; done
  rm -rf "$root.tmp/.debs" "$root"; mv "$root.tmp" "$root"
}

# Runs a program of the unpacked root with its own loader and libraries.
rooted() { local p=$1; shift; "$QLD" --library-path "$QLIB" "$QROOT$p" "$@"; }

pack() { ( cd "$1" && find . | "$BB" cpio -o -H newc 2>/dev/null ); }   # pack DIR: as cpio

prep_qemu() { # backports|bookworm
  local suite
  case $1 in backports) suite=bookworm-backports;; bookworm) suite=bookworm;; *) die "--qemu: backports or bookworm";; esac
  QROOT=$CACHE/qemu-$1
  [ -x "$QROOT/usr/bin/qemu-system-x86_64" ] ||
    { say "fetching QEMU ($suite)"; closure "$QROOT" "$suite" qemu-system-x86 busybox-static zstd xz-utils; }
  QLIB=$QROOT/lib/x86_64-linux-gnu:$QROOT/usr/lib/x86_64-linux-gnu
  QLD=$QROOT/lib64/ld-linux-x86-64.so.2
  [ -e "$QLD" ] || QLD=$QROOT/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
  BB=$QROOT/bin/busybox
}

# apt_of NAME SUITE: APT and apt's lists become those of another release
apt_of() {
  local dir=$CACHE/apt-$1 site
  mkdir -p "$dir/none" "$dir/lists/partial" "$dir/cache/archives/partial"
  site=$(sed -n 's/^deb \[[^]]*\] \([^ ]*\) bookworm main$/\1/p' "$CACHE/apt/sources.list")
  {
    echo "deb [signed-by=$KEYRING] $site $2 main"
    case $2 in *-backports) echo "deb [signed-by=$KEYRING] $site ${2%-backports} main";; esac
  } > "$dir/sources.list"
  APT=(-o "Dir::Etc::sourcelist=$dir/sources.list" -o "Dir::Etc::sourceparts=$dir/none"
       -o "Dir::Etc::preferencesparts=$dir/none" -o "Dir::State::lists=$dir/lists"
       -o "Dir::Cache=$dir/cache" -o APT::Sandbox::User=root -o APT::Install-Recommends=false)
  apt-get "${APT[@]}" update -qq >"$CACHE/apt/update.log" 2>&1 || { cat "$CACHE/apt/update.log" >&2; die "apt-get update failed"; }
}

# Takes the plain ELF out of a bzImage: its PVH entry skips the decompression in the guest, about 1 s.
unpack_kernel() { # VMLINUZ VMLINUX
  local off
  try() { # MAGIC DECOMPRESSOR...
    while read -r off; do
      tail -c +$((off + 1)) "$vz" | "${@:2}" > "$elf" 2>/dev/null
      [ "$(head -c4 "$elf" | tail -c3)" = ELF ] && return 0
    done < <(LC_ALL=C grep -obUaP "$1" "$vz" | cut -d: -f1)
    return 1
  }
  local vz=$1 elf=$2
  try '\x28\xb5\x2f\xfd' rooted /usr/bin/zstd -dcq || try '\xfd7zXZ\x00' rooted /usr/bin/xz -dcq || cp "$vz" "$elf"
}

prep_kernel() { # backports|cloud|bookworm|oldest|newest
  local meta suite version package deb part vmlinuz lists=("${APT[@]}")
  case $1 in
    backports) meta=linux-image-amd64 suite=bookworm-backports;;
    cloud) meta=linux-image-cloud-amd64 suite=bookworm-backports;;
    bookworm) meta=linux-image-amd64 suite=bookworm;;
    oldest) meta=linux-image-amd64 suite=bullseye;;
    newest) meta=linux-image-amd64 suite=trixie-backports;;
    *) die "--kernel: backports, cloud, bookworm, oldest or newest";;
  esac
  KDIR=$CACHE/kernel-$1
  if [ ! -e "$KDIR/.done" ]; then
    say "fetching kernel ($meta, $suite)"
    apt_prep
    # Other releases have lists of their own: beside those of bookworm they would change how packages for the guest are
    # resolved.
    case $1 in oldest|newest) apt_of "$1" "$suite";; esac
    version=$(apt-cache "${APT[@]}" madison "$meta" |
      awk -F'|' -v s="$suite/" '{gsub(/ /, "", $2)} index($3, s) && !n++ {print $2}')
    [ -n "$version" ] || die "no $meta in $suite"
    package=$(apt-cache "${APT[@]}" show "$meta=$version" |
      sed -n 's/^Depends:.*\(linux-image-[^ ,]*\).*/\1/p' | sed 1q)
    deb=$(fetch_deb "$package") || exit 125
    rm -rf "$KDIR"; mkdir -p "$KDIR"
    # Since 7.x the image and its modules are packages below it.
    for part in "" $(dpkg-deb -f "$deb" Depends | grep -oE 'linux-(binary|modules)-[0-9][^ ,]*'); do
      [ -z "$part" ] || deb=$(fetch_deb "$part") || exit 125
      dpkg-deb -x "$deb" "$KDIR" || die "cannot unpack $deb"
      rm -f "$deb"
    done
    KV=${package#linux-image-}
    echo "$KV" > "$KDIR/version"
    [ -d "$KDIR/lib/modules/$KV" ] || { rm -rf "${KDIR:?}/lib"; ln -s usr/lib "$KDIR/lib"; }
    vmlinuz=$KDIR/boot/vmlinuz-$KV
    [ -e "$vmlinuz" ] || vmlinuz=$(find "$KDIR/usr/lib/modules/$KV" -maxdepth 1 -name 'vmlinuz*' -print -quit)
    unpack_kernel "$vmlinuz" "$KDIR/vmlinux"
    touch "$KDIR/.done"
    APT=("${lists[@]}")
  fi
  KV=$(cat "$KDIR/version")
}

# The base initramfs: busybox and uncompressed modules, which boot faster. The files of a run come behind it.
MODS="virtio_net tcp_diag udp_diag vmxnet3 e1000e e1000 igb nvme virtio_blk virtio_pci pktgen veth dummy bonding 8021q bridge macvlan ifb ext4 crc32c_generic"

prep_base() { # SUITE
  BASE=$CACHE/base-$1-$(cksum <<<"$MODS $KV" | cut -d' ' -f1).cpio
  [ ! -e "$BASE" ] || return 0
  say "building the base initramfs"
  local b=$CACHE/base.tmp a m modules=$KDIR/lib/modules/$KV
  rm -rf "$b"
  mkdir -p "$b"/{bin,dev,proc,sys,tmp,run,etc,out,payload,harness,root,var/run,usr/bin,sbin,usr/sbin} "$b/lib/modules/$KV"
  cp "$BB" "$b/bin/busybox"
  for a in $("$BB" --list); do [ "$a" = busybox ] || ln -sf /bin/busybox "$b/bin/$a"; done
  cp "$modules"/modules.builtin* "$b/lib/modules/$KV/" 2>/dev/null
  for m in $MODS; do add_module "$b" "$m"; done
  rm -f "$b"/.have.*
  "$BB" depmod -b "$b" "$KV" || die "depmod failed"
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' > "$b/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' > "$b/etc/group"
  pack "$b" > "$BASE.tmp" && mv "$BASE.tmp" "$BASE"
  rm -rf "$b"
}

add_module() { # DIR MODULE: the module and those that it depends on
  local b=$1 n=${2//-/_} f rel d
  [ ! -e "$b/.have.$n" ] || return 0
  : > "$b/.have.$n"
  f=$(find "$KDIR/lib/modules/$KV/kernel" -regextype posix-extended -regex ".*/${n//_/[-_]}\.ko(\.xz|\.zst)?" -print -quit)
  [ -n "$f" ] || return 0                    # built in, or not in this flavour
  rel=${f#"$KDIR/"}; rel=$b/${rel%.[xz][zs]*}
  mkdir -p "${rel%/*}"
  case $f in *.xz) rooted /usr/bin/xz -dc "$f";; *.zst) rooted /usr/bin/zstd -dcq "$f";; *) cat "$f";; esac > "$rel"
  for d in $(tr '\0' '\n' < "$rel" | LC_ALL=C sed -n '/^depends=/{s/^depends=//;s/,/ /g;p;q}'); do
    add_module "$b" "$d"
  done
}

is_dynamic() { # FILE: an ELF file that asks for a loader
  [ "$(head -c4 "$1" 2>/dev/null | tail -c3)" = ELF ] && LC_ALL=C grep -qa 'ld-linux-x86-64.so.2' "$1"
}

copy_libs() { # ROOT ELF DEST: the shared libraries of ELF, from ROOT ('' is this machine), go below DEST
  local pre=$1 elf=$2 dest=$3 l multi=lib/x86_64-linux-gnu
  if [ -n "$pre" ]; then
    "$pre/lib64/ld-linux-x86-64.so.2" --library-path "$pre/$multi:$pre/usr/$multi:$pre/usr/$multi/systemd" --list "$elf"
  else
    ldd "$elf"
  fi 2>/dev/null | awk '{for (i = 1; i <= NF; i++) if ($i ~ /^\//) {print $i; break}}' | while read -r l; do
    case $l in
      */ld-linux-x86-64.so.2)
        mkdir -p "$dest/lib64"
        cp -Ln "${pre:+$pre}/lib64/ld-linux-x86-64.so.2" "$dest/lib64/" 2>/dev/null || cp -Ln "$l" "$dest/lib64/";;
      *) mkdir -p "$dest/$multi"; cp -Ln "$l" "$dest/$multi/";;
    esac
  done
}

prep_package() { # PKG: its files, and the libraries that its programs need
  local ov=$CACHE/overlay-$1.cpio o=$CACHE/overlay.tmp deb e
  if [ ! -e "$ov" ]; then
    say "fetching package $1"
    closure "$CACHE/overlay.root" bookworm "$1"
    deb=$(fetch_deb "$1") || exit 125
    rm -rf "$o"; mkdir -p "$o"; dpkg-deb -x "$deb" "$o"
    rm -rf "$o"/usr/share/{doc,man,locale,lintian} "$deb"
    while IFS= read -r e; do
      ! is_dynamic "$e" || copy_libs "$CACHE/overlay.root" "$CACHE/overlay.root${e#"$o"}" "$o"
    done < <(find "$o" -type f -perm -100)
    pack "$o" > "$ov.tmp" && mv "$ov.tmp" "$ov"
    rm -rf "$o" "$CACHE/overlay.root"
  fi
  OVERLAYS+=("$ov")
}

prep_system() { # SUITE[+PKG...]: a root filesystem with systemd, by suite, packages, kernel and how it is built
  local words sources
  IMAGE=$CACHE/system-$1-$(cksum <<<"$KV $(cat "$VM_DIR/system-image.sh")" | cut -d' ' -f1).img
  [ ! -e "$IMAGE" ] || return 0
  command -v mmdebstrap >/dev/null || die "--system needs mmdebstrap (apt-get install mmdebstrap)"
  say "building $IMAGE (a minute)"
  apt_prep
  IFS=+ read -r -a words <<<"$1"
  sources=$CACHE/apt/sources.list
  if [ "${words[0]}" != bookworm ]; then
    apt_of "${words[0]}" "${words[0]}"
    sources=$CACHE/apt-${words[0]}/sources.list
  fi
  SOURCES=$sources "$VM_DIR/system-image.sh" "${words[0]}" "$KDIR" "$IMAGE" "${words[@]:1}" \
    >"$CACHE/system.log" 2>&1 || { tail -5 "$CACHE/system.log" >&2; die "cannot build the root filesystem of $1"; }
}
