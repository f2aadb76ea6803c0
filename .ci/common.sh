# shellcheck shell=bash
# common.sh - what .ci/run and .ci/full share. Sourced by them, at the top of the project.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
export PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin

heading() { printf '\n=== %s (%d s)\n' "$*" "$SECONDS"; }

# install COMMAND PACKAGE [COMMAND PACKAGE...]: installs each package whose command (or file) is missing
install() {
  local missing=()
  while [ $# -gt 0 ]; do
    if ! command -v "$1" >/dev/null && [ ! -e "$1" ]; then missing+=("$2"); fi
    shift 2
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    echo "missing, and only root can install them: ${missing[*]}" >&2
    return 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  echo "installed: ${missing[*]}"
}

# component NAME COMMAND: adds a component of the toolchain unless `cargo COMMAND` works
component() {
  cargo "$2" --version >/dev/null 2>&1 && return
  if ! command -v rustup >/dev/null; then
    echo "cargo $2 is missing, and there is no rustup to add $1 with" >&2
    return 1
  fi
  rustup component add "$1"
}

# as_root SCRIPT...: a script that ends with 77 where it cannot run at all: for root, skipped tests are an error
as_root() {
  local status=0
  "$@" || status=$?
  if [ "$status" = 77 ] && [ "$(id -u)" != 0 ]; then return 0; fi
  return "$status"
}

# What cargo test, the release build and virtual machines need.
base_tools() {
  if ! command -v cargo >/dev/null; then
    echo "cargo is missing: install a Rust toolchain (for the minimum version see rust-version in Cargo.toml)" >&2
    exit 1
  fi
  cargo --version
  component rustfmt fmt
  component clippy clippy
  install cc gcc c++ g++ /usr/include/stdlib.h libc6-dev unshare util-linux tar tar find findutils awk mawk \
    /usr/share/keyrings/debian-archive-keyring.gpg debian-archive-keyring \
    /etc/ssl/certs/ca-certificates.crt ca-certificates shellcheck shellcheck mandoc mandoc zsh zsh fish fish \
    ip iproute2 mmdebstrap mmdebstrap mke2fs e2fsprogs python3 python3 readelf binutils git git \
    rpmbuild rpm busybox busybox-static
  if [ ! -e /dev/net/tun ] && [ "$(id -u)" = 0 ]; then
    mkdir -p /dev/net && mknod /dev/net/tun c 10 200 || echo "/dev/net/tun is missing and cannot be created"
  fi
}

# The release's binary and packages, once; the tests after it run this binary.
release() {
  dist/build --deb --rpm --archive --target x86_64-unknown-linux-gnu
  export NICPIN=${CARGO_TARGET_DIR:-$PWD/target}/x86_64-unknown-linux-gnu/release/nicpin
}
