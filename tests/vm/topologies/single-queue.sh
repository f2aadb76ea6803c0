# 8 vCPU, 2 nodes (CPUs 0-3 and 4-7), a NIC whose driver has one queue on each, on one wire: RPS stands in for queues
smp 8 2 4 1
node 0 384 socket-id=0
node 1 256 socket-id=1
dist 0 1 21
nic nic0 e1000e 0 1 w0
nic nic1 e1000e 1 1 w0
