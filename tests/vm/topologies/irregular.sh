# 8 vCPU of 240 possible ones (masks of eight groups). CPU numbers alternate between nodes 0 and 1; node 2 has memory and
# no CPUs, as near to node 0 as to node 1; node 3 has two CPUs and no memory
smp 8 240 1 1 240
node 0 384 socket-id=0 socket-id=2 socket-id=4
node 1 256 socket-id=1 socket-id=3 socket-id=5
node 2 128
node 3 0 socket-id=6 socket-id=7
dist 0 1 21; dist 0 2 17; dist 0 3 21
dist 1 2 17; dist 1 3 21
dist 2 3 28
nic nic0 virtio 0 3 w0      # even CPUs
nic nic1 igb    1 8 w1      # odd CPUs
nic nic2 virtio 2 4 w0      # on the node without CPUs
nic nic3 igb    3 8 w1      # on the node without memory
