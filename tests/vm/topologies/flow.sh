# 8 CPUs on two nodes; cards with RSS, each with a far end on its wire that sends
smp 8 2 4 1
node 0 512 socket-id=0
node 1 256 socket-id=1
dist 0 1 21
nic nic0 igb        0    8 w0
nic nic1 virtio     none 1 w0
nic nic2 virtio-rss 1    4 w1
nic nic3 virtio     none 1 w1
nic nic4 vmxnet3    1    4 w2
nic nic5 virtio     none 1 w2
