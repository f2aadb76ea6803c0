#!/bin/bash
# system-image.sh SUITE KERNEL_DIR IMAGE [PACKAGE...] - a Debian root filesystem with systemd, udev and networkd, and the
# modules of the tests' kernel, as an ext4 image. vm-run.sh --system calls it. Needs root, mmdebstrap and mke2fs; nothing
# of this machine is changed. $SOURCES is apt's sources.list.
set -eu
suite=$1 kernel=$2 image=$3; shift 3
version=$(cat "$kernel/version")
work=$(mktemp -d "${TMPDIR:-/tmp}/nicpin-image.XXXXXX"); trap 'rm -rf "$work"' EXIT
root=$work/root
packages="systemd,systemd-sysv,udev,dbus,kmod,iproute2,procps"
for package in "$@"; do packages+=,$package; done
mmdebstrap --quiet --variant=essential --include="$packages" --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' "$suite" "$root" "$SOURCES"

# Modules of network cards and disks, with their dependencies
from=$kernel/lib/modules/$version to=$root/lib/modules/$version
mkdir -p "$to/kernel"
# A kernel in several packages may lack them.
cp "$from"/modules.builtin* "$from"/modules.order "$to/" 2>/dev/null || true
(
  cd "$from/kernel"
  find drivers/net/ethernet/intel drivers/net/vmxnet3 drivers/net/virtio_net* drivers/net/net_failover* drivers/net/mdio* \
    drivers/virtio net/sched drivers/block/virtio_blk* drivers/net/veth* drivers/ptp drivers/pps drivers/dca drivers/i2c/algos net/core/failover* \
    fs/autofs fs/ext4 fs/jbd2 fs/mbcache* lib crypto/crc32c* -name '*.ko*' -exec cp --parents -t "$to/kernel" {} + 2>/dev/null
) || true
chroot "$root" depmod "$version"

echo guest > "$root/etc/hostname"
: > "$root/etc/fstab"
tr -d - < /proc/sys/kernel/random/uuid > "$root/etc/machine-id"
mkdir -p "$root/etc/systemd/network" "$root/harness" "$root/payload" "$root/out"
# Cards are up, without addresses.
cat > "$root/etc/systemd/network/50-nic.network" <<END
[Match]
Name=nic*
[Link]
RequiredForOnline=carrier
[Network]
LinkLocalAddressing=no
ConfigureWithoutCarrier=yes
END
cat > "$root/etc/systemd/system/harness.service" <<END
[Unit]
After=multi-user.target network-online.target
Wants=network-online.target
[Service]
Type=exec
ExecStart=/bin/bash /run/harness/start
StandardOutput=null
StandardError=null
END
cat > "$root/etc/systemd/system/harness.target" <<END
[Unit]
Requires=multi-user.target
Wants=harness.service
After=multi-user.target
AllowIsolate=yes
END
ln -sf /etc/systemd/system/harness.target "$root/etc/systemd/system/default.target"
for unit in getty.target systemd-timesyncd.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
  e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-firstboot.service systemd-pstore.service; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
chroot "$root" systemctl enable systemd-networkd systemd-networkd-wait-online
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*
mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -m 0 -d "$root" -L guest "$image.tmp" 768M
mv "$image.tmp" "$image"
