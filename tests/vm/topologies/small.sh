# 4 CPUs, 2 nodes (CPUs 0-1 and 2-3), a virtio card with 4 queues on each, on one wire; for guests with systemd
smp 4 2 2 1
node 0 384 socket-id=0
node 1 256 socket-id=1
dist 0 1 21
nic nic0 virtio 0 4 w0
nic nic1 virtio 1 4 w0
