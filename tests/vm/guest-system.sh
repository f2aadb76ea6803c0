# shellcheck shell=dash
# Sourced by /init where the guest has a root filesystem of its own: mounts it and starts its systemd. Cards get the
# names of the topology by .link files.
for m in virtio_pci virtio_blk crc32c_generic ext4; do modprobe "$m" 2>/dev/null; done
n=0; while [ $n -lt 100 ] && ! [ -e /dev/vda ]; do usleep 50000; n=$((n + 1)); done
mkdir -p /sysroot /run/harness/bin /run/payload /run/systemd/network
mount -t ext4 -o rw,noatime /dev/vda /sysroot || { echo "STATUS 125" > /dev/ttyS2; poweroff -f; }
# Files for the guest before its systemd starts
if [ -d /payload/rootfs ]; then cp -a /payload/rootfs/. /sysroot/; rm -r /payload/rootfs; fi
cp -a /harness/. /run/harness/; cp -a /payload/. /run/payload/
cp /bin/busybox /run/harness/bin/; ln -s busybox /run/harness/bin/usleep; ln -s busybox /run/harness/bin/ping
while read -r mac name; do
  printf '[Match]\nMACAddress=%s\n[Link]\nName=%s\n' "$mac" "$name" > "/run/systemd/network/10-$name.link"
done < /harness/nics
mount --bind /run/harness /sysroot/harness; mount --bind /run/payload /sysroot/payload
umount /dev/pts /dev/shm 2>/dev/null
for d in run dev sys proc; do mount --move /$d /sysroot/$d; done
exec switch_root /sysroot /sbin/init
