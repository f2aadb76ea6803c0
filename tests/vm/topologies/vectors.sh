# 4 CPUs, and 264 IRQs of network cards: more than the interrupt vectors of one CPU; masks take effect at once
smp 4 1 4 1
iommu
mem 512
nic nic0 virtio none 16 w0
nic nic1 virtio none 16 w0
nic nic2 virtio none 16 w0
nic nic3 virtio none 16 w0
nic nic4 virtio none 16 w1
nic nic5 virtio none 16 w1
nic nic6 virtio none 16 w1
nic nic7 virtio none 16 w1
