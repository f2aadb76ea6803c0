# 4 CPUs, 2 nodes (CPUs 0-1 and 2-3), virtio, igb, vmxnet3 and e1000e; for guests with systemd
smp 4 2 2 1
node 0 384 socket-id=0
node 1 384 socket-id=1
dist 0 1 21
nic nic0 virtio 0 4 w0
nic nic1 igb 1 8 w0
nic nic2 vmxnet3 0 8 w1
nic nic3 e1000e 1 1 w1
