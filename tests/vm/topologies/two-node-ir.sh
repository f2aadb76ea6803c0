# two-node with interrupt remapping (smp_affinity takes effect at once, not at the next interrupt), and disks with
# kernel-managed vectors
iommu
# shellcheck disable=SC1091
. "$VM_DIR/topologies/two-node.sh"
vblk 0 4
nvme 1 4
