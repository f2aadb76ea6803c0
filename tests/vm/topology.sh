# shellcheck shell=bash
# The words that a file in topologies/ is written in. Sourced by vm-run.sh; each adds to QEMU's arguments QA.

QA=() MEM=0 NIC_N=0 NIC_MAP='' NIC_MODS='' WIRES='' PORT_N=0
declare -A PXB=()

# iommu: interrupt remapping; before any node or nic
iommu() { QA+=(-device "intel-iommu,intremap=on"); KARGS="intel_iommu=on $KARGS"; }

# smp CPUS SOCKETS CORES THREADS [POSSIBLE]: POSSIBLE CPUs could be plugged in; SOCKETS x CORES x THREADS is their number
smp() { QA+=(-smp "$1,sockets=$2,cores=$3,threads=$4,maxcpus=${5:-$1}"); }

# mem MIB: a flat machine without NUMA tables
mem() { MEM=$1; }

# node ID MIB [CPU-PROPERTIES...]: node 0 256 socket-id=0; no properties is memory only, 0 MiB is CPUs only
node() {
  local id=$1 m=$2 c; shift 2
  MEM=$((MEM + m))
  if [ "$m" = 0 ]; then
    QA+=(-numa "node,nodeid=$id")
  else
    QA+=(-object "memory-backend-ram,id=mem$id,size=${m}M" -numa "node,nodeid=$id,memdev=mem$id")
  fi
  for c in "$@"; do QA+=(-numa "cpu,node-id=$id,$c"); done
}

# dist A B N: the distance of two nodes
dist() { QA+=(-numa "dist,src=$1,dst=$2,val=$3" -numa "dist,src=$2,dst=$1,val=$3"); }

# nic NAME MODEL NODE|none QUEUES WIRE; MODEL: virtio virtio-rss igb vmxnet3 e1000e e1000
nic() {
  local name=$1 model=$2 n=$3 q=$4 w=$5 mac dev
  mac=$(printf '52:54:00:12:34:%02x' "$NIC_N")
  case $model in
    virtio|virtio-rss)
      add_module_once virtio_pci virtio_net      # virtio_pci is a module in 6.1, built in later
      dev=virtio-net-pci; [ "$q" = 1 ] || dev+=",mq=on,vectors=$((2 * q + 2))"
      [ "$model" = virtio ] || dev+=",rss=on,hash=on";;
    igb|vmxnet3|e1000e|e1000) add_module_once "$model"; dev=$model;;
    *) die "topology: unknown NIC model $model";;
  esac
  # e1000 is conventional PCI: root bus, no node
  if [ "$model" = e1000 ]; then BUS=pcie.0; else slot "$n"; fi
  local nd="tap,id=net$NIC_N,ifname=tap$NIC_N,script=$RUN/ifup-$w,downscript=no,vhost=off"
  [[ "$model" != virtio* ]] || [ "$q" = 1 ] || nd+=",queues=$q"
  QA+=(-netdev "$nd" -device "$dev,netdev=net$NIC_N,mac=$mac,bus=$BUS,romfile=")
  case " $WIRES " in *" $w "*) ;; *) WIRES+=" $w";; esac
  NIC_MAP+="$mac $name"$'\n'; NIC_N=$((NIC_N + 1))
}

# nvme NODE|none QUEUES: kernel-managed vectors
nvme() {
  disk "$1"
  QA+=(-device "nvme,drive=drv$PORT_N,serial=disk$PORT_N,bus=$BUS,max_ioqpairs=$2,msix_qsize=$(($2 + 1))")
  add_module_once nvme
}

# vblk NODE|none QUEUES: kernel-managed vectors
vblk() {
  disk "$1"
  QA+=(-device "virtio-blk-pci,drive=drv$PORT_N,bus=$BUS,num-queues=$2,vectors=$(($2 + 1))")
  add_module_once virtio_pci virtio_blk
}

disk() { slot "$1"; truncate -s 8M "$RUN/disk$PORT_N.img"; QA+=(-drive "if=none,id=drv$PORT_N,format=raw,file=$RUN/disk$PORT_N.img"); }

slot() { # NODE|none: sets BUS to a fresh root port on that node
  local n=$1 up=pcie.0
  if [ "$n" != none ]; then
    up=pxb$n
    [ -n "${PXB[$n]:-}" ] || QA+=(-device "pxb-pcie,id=pxb$n,bus=pcie.0,bus_nr=$((32 + 32 * n)),numa_node=$n")
    PXB[$n]=1
  fi
  PORT_N=$((PORT_N + 1)); BUS=rp$PORT_N
  QA+=(-device "pcie-root-port,id=$BUS,bus=$up,chassis=$PORT_N,slot=$PORT_N")
}

add_module_once() { local m; for m in "$@"; do case " $NIC_MODS " in *" $m "*) ;; *) NIC_MODS+=" $m";; esac; done; }
