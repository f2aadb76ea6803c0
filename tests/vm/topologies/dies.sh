# 8 CPUs, 2 nodes (CPUs 0-3 and 4-7) with two L3 domains each, a virtio card with 4 queues on each, on one wire; for guests with systemd
# Without CPUID leaf 1F, whose levels QEMU 10.0 cannot encode for dies.
QA+=(-cpu "Nehalem,level=11" -smp "8,sockets=2,dies=2,cores=2,threads=1")
node 0 512 socket-id=0
node 1 256 socket-id=1
dist 0 1 21
nic nic0 virtio 0 4 w0
nic nic1 virtio 1 4 w0
