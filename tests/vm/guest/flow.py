"""flow.py: random flows are sent to a card, a group at a time by the queue that `nicpin flow` predicts, and the queue's
counters say where they arrived.

usage: flow.py check NIC FAR-PID FAR-NIC FLOWS       all kinds of flows; prints the counts of each kind
       flow.py cpus NIC FAR-PID FAR-NIC FLOWS        the same by the CPU that takes them
       flow.py ports NIC FAR-PID FAR-NIC CPU         the ports that --to-cpu names
       flow.py sockets NIC FAR-PID FAR-NIC COUNT     connections of the kernel: the CPU and NAPI instance that each
                                                     socket reports, and how `nicpin measure` counts them; COUNT of
                                                     each kind
"""
import ipaddress, json, os, random, re, socket, struct, subprocess, sys, time

NIC, PID, FAR = sys.argv[2:5]
MAC = bytes(6) if sys.argv[1] in ("send", "connect") else bytes.fromhex(open(f"/sys/class/net/{NIC}/address").read().strip().replace(":", ""))
SEED = int(os.environ.get("SEED", "1"))
random.seed(SEED)


class sender:
    """Sends frames from the network namespace of the far end, by a process of its own."""

    def __init__(self):
        command = ["nsenter", "-t", PID, "-n", sys.executable, __file__, "send", FAR, "", ""]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE)

    def send(self, data):
        self.process.stdin.write(data.hex().encode() + b"\n")

    def flush(self):
        self.process.stdin.flush()


def send(interface):
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind((interface, 0))
    for line in sys.stdin:
        out.send(bytes.fromhex(line))


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def frame(kind, source, sport, destination, dport):
    proto = 6 if kind.startswith("tcp") else 17
    src, dst = (ipaddress.ip_address(a).packed for a in (source, destination))
    if proto == 6:
        l4 = struct.pack("!HHIIBBHHH", sport, dport, 1, 0, 0x50, 0x10, 1024, 0, 0)
    else:
        l4 = struct.pack("!HHHH", sport, dport, 16, 0) + b"nicpin.."
    pseudo = src + dst + (struct.pack("!BBH", 0, proto, len(l4)) if len(src) == 4 else struct.pack("!IHBB", len(l4), 0, 0, proto))
    at = 16 if proto == 6 else 6
    l4 = l4[:at] + struct.pack("!H", checksum(pseudo + l4) or 0xffff) + l4[at + 2:]
    if len(src) == 4:
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(l4), 0, 0, 64, proto, 0) + src + dst
        head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
        ethertype = 0x0800
    else:
        head = struct.pack("!IHBB", 6 << 28, len(l4), proto, 64) + src + dst
        ethertype = 0x86dd
    return MAC + b"\x02\0\0\0\0\x01" + struct.pack("!H", ethertype) + head + l4


def counters():
    """Packets by receive queue, as the driver counts them; empty where it does not."""
    text = subprocess.run(["ethtool", "-S", NIC], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"rx_?(?:queue_)?(\d+)_packets: (\d+)", text)
    return {int(queue): int(packets) for queue, packets in found}


def processed():
    """Packets that each CPU handed to the stack, after RPS."""
    rows = [line.split() for line in open("/proc/net/softnet_stat")]
    return {int(row[12], 16): int(row[0], 16) for row in rows}


def address(kind):
    bits, base = (32, "10.0.0.0") if kind.endswith("4") else (128, "fd00::")
    width = 24 if bits == 32 else 112
    return str(ipaddress.ip_address(int(ipaddress.ip_address(base)) + random.getrandbits(width) | 2))


def predict(flows):
    def end(address, port):
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    lines = "".join(f"{kind[:3]} ESTAB 0 0 {end(d, dp)} {end(s, sp)}\n" for kind, s, sp, d, dp in flows)
    run = subprocess.run(["nicpin", "flow", NIC, "-", "--json"], input=lines, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(f"nicpin flow: {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)["arrivals"]


def taken(by):
    """Packets by queue or CPU."""
    return counters() if by == "queue" else processed()


def deliver(out, part, by):
    """Sends flows until as many packets have arrived as were sent: how many each queue or CPU took. Packets that are
    lost on the way say nothing, so all are sent again, at most three times."""
    for attempt in range(4):
        before = taken(by)
        for flow in part:
            out.send(frame(*flow))
        out.flush()
        for _ in range(50):
            now = taken(by)
            gained = {key: now[key] - before.get(key, 0) for key in now}
            if sum(gained.values()) >= len(part):
                return gained
            time.sleep(0.02)
        flush_taps()
    return gained


def flush_taps():
    """QEMU stops to read one of a card's several taps when the queue of a packet has no buffer, and goes on only when the
    guest gives buffers to the queue with the tap's own number, or sends its RSS settings: so the same are sent again."""
    said = subprocess.run(["ethtool", "-x", NIC], capture_output=True, text=True).stdout
    key = re.search(r"RSS hash key:\n([0-9a-f:]+)", said)
    if key:
        subprocess.run(["ethtool", "-X", NIC, "hkey", key[1]], capture_output=True)


class Outcome:
    """How many flows arrived where it was predicted."""

    def __init__(self):
        self.right = self.wrong = self.lost = 0

    def add(self, part, gained, place):
        here = min(gained.get(place, 0), len(part))
        elsewhere = min(sum(gained.values()), len(part)) - here
        self.right, self.wrong, self.lost = self.right + here, self.wrong + elsewhere, self.lost + len(part) - here - elsewhere

    def flows(self):
        return self.right + self.wrong + self.lost

    def __str__(self):
        return f"{self.right} right, {self.wrong} wrong, {self.lost} lost"


def groups(flows, arrivals, by):
    grouped = {}
    for flow, arrival in zip(flows, arrivals):
        if arrival["missing"] is None or (by == "queue" and arrival["queue"] is not None):
            grouped.setdefault(arrival[by], []).append(flow)
    return grouped


def random_flows(kind, count):
    flows = [(kind, address(kind), random.randrange(1, 65536), address(kind), random.randrange(1, 65536)) for _ in range(count)]
    return [flow for flow in flows if flow[1] != flow[3]]


def compare(count, by):
    """Random flows of each kind: whether the queue or CPU that was predicted takes each."""
    out = sender()
    # A vector moves at its next interrupt, which still arrives on the old CPU.
    for _ in range(12):
        deliver(out, random_flows("tcp4", 16), "cpu")
        time.sleep(0.1)
    for kind in ("tcp4", "udp4", "tcp6", "udp6"):
        flows = random_flows(kind, count)
        arrivals = predict(flows)
        unknown = {a["missing"] for a in arrivals if a[by] is None}
        known = Outcome()
        for place, group in sorted(groups(flows, arrivals, by).items()):
            for at in range(0, len(group), 100):
                known.add(group[at:at + 100], deliver(out, group[at:at + 100], by), place)
        print(f"{NIC} {kind} by {by}: {known}, {len(flows) - known.flows()} unknown {'; '.join(sorted(unknown))}", flush=True)


def ports(cpu):
    out = sender()
    run = subprocess.run(["nicpin", "flow", NIC, "10.0.0.1", "10.0.0.2:5201", "--to-cpu", cpu, "--ports", "1000", "--json"], capture_output=True, text=True)
    found = json.loads(run.stdout)["ports"][0]["ports"] if run.returncode == 0 else sys.exit(run.stdout + run.stderr)
    known = Outcome()
    for at in range(0, len(found), 100):
        part = [("tcp4", "10.0.0.1", port, "10.0.0.2", 5201) for port in found[at:at + 100]]
        known.add(part, deliver(out, part, "cpu"), int(cpu))
    print(f"{NIC} --to-cpu {cpu}: {known}, {1000 - len(found)} unknown", flush=True)


def connect(kind, address, count):
    """The far end of connections: each sends a byte for each line of standard input, until that ends."""
    of = socket.AF_INET if kind.endswith("4") else socket.AF_INET6
    ends = [socket.socket(of, socket.SOCK_STREAM if kind.startswith("tcp") else socket.SOCK_DGRAM) for _ in range(count)]
    for end in ends:
        end.settimeout(30)
        end.connect((address, 5201))
    for _ in sys.stdin:
        for end in ends:
            end.send(b"x")


def accepted(kind, address, count, ask):
    """The connected sockets here of `connect` there, each of which has received; `ask` lets the far end send."""
    of = socket.AF_INET if kind.endswith("4") else socket.AF_INET6
    if kind.startswith("tcp"):
        server = socket.create_server((address, 5201), family=of, backlog=count)
        ask()
        ends = [server.accept()[0] for _ in range(count)]
        for end in ends:
            end.recv(1)
        return ends

    def bound():
        end = socket.socket(of, socket.SOCK_DGRAM)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        end.bind((address, 5201))
        end.settimeout(1)
        return end

    def heard(end):
        for _ in range(20):
            try:
                return end.recvfrom(1)[1]
            except TimeoutError:
                ask()
        raise TimeoutError("no datagram arrived in 20 s")
    server, peers = bound(), set()
    while len(peers) < count:
        peers.add(heard(server)[:2])
    ends = []
    for peer in sorted(peers):
        ends.append(bound())
        ends[-1].connect(peer)
    server.close()
    for end in ends:
        heard(end)
    return ends


def measured():
    run = subprocess.run(["nicpin", "measure", NIC, "--seconds", "1", "--json"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["connections"]


def with_ipv6(on):
    """IPv6 is off but here: what its neighbour discovery sends would be counted with the flows."""
    for far, nic, address in ((False, NIC, "fd08::1/64"), (True, FAR, "fd08::2/64")):
        conf = f"/proc/sys/net/ipv6/conf/{nic}"
        commands = f"echo 0 > {conf}/accept_dad; echo {int(not on)} > {conf}/disable_ipv6"
        commands += f"; ip addr add {address} dev {nic}" if on else ""
        subprocess.run(["nsenter", "-t", PID, "-n"] * far + ["sh", "-c", commands], check=True)


def sockets(count):
    """The CPU that the kernel reports for each socket is that after RPS; a NAPI instance polls one queue."""
    node = min(int(name[4:]) for name in os.listdir("/sys/devices/system/node") if re.fullmatch(r"node\d+", name))
    first, last = open(f"/sys/devices/system/node/node{node}/cpulist").read().split("-")
    os.sched_setaffinity(0, range(int(first), int(last) + 1))
    with_ipv6(True)
    for kind in ("tcp4", "udp4", "tcp6", "udp6"):
        sockets_of(kind, count, node)
    with_ipv6(False)


def sockets_of(kind, count, node):
    here = "10.8.0.1" if kind.endswith("4") else "fd08::1"
    command = ["nsenter", "-t", PID, "-n", sys.executable, __file__, "connect", kind, here, str(count)]
    far = subprocess.Popen(command, stdin=subprocess.PIPE)

    def ask():
        far.stdin.write(b"\n")
        far.stdin.flush()
    ends = accepted(kind, here, count, ask)
    flows = [(kind, *end.getpeername()[:2], here, 5201) for end in ends]
    cpus = [end.getsockopt(socket.SOL_SOCKET, 49) for end in ends]   # SO_INCOMING_CPU
    napis = [end.getsockopt(socket.SOL_SOCKET, 56) for end in ends]  # SO_INCOMING_NAPI_ID
    arrivals = predict(flows)
    known = [at for at, arrival in enumerate(arrivals) if arrival["missing"] is None]
    wrong = [at for at in known if arrivals[at]["cpu"] != cpus[at]]
    queues = {}
    for at, arrival in enumerate(arrivals):
        if arrival["queue"] is not None and napis[at]:
            queues.setdefault(napis[at], set()).add(arrival["queue"])
    wrong += [napi for napi, found in queues.items() if len(found) > 1]
    unknown = {arrival["missing"] for arrival in arrivals} - {None}
    print(f"{NIC} {kind} sockets by cpu: {len(known) - len(wrong)} right, {len(wrong)} wrong, 0 lost, {count - len(known)} unknown "
          f"{'; '.join(sorted(unknown))}; {len(queues)} NAPI instances", flush=True)
    counted, expected = measured(), {}
    for at in known:
        expected[cpus[at]] = expected.get(cpus[at], 0) + 1
    found = {of["cpu"]: of["connections"] for of in counted["arrivals"] if of["process_node"] == node}
    right = found == expected and counted["established"] == count and sum(of["connections"] for of in counted["unknown"]) == count - len(known)
    print(f"{NIC} {kind} measure: {int(right)} right, {int(not right)} wrong, 0 lost", flush=True)
    if not right:
        print(counted, expected)
    far.stdin.close()
    far.wait()
    for end in ends:
        end.close()


if sys.argv[1] == "send":
    send(NIC)
elif sys.argv[1] == "connect":
    connect(NIC, PID, int(FAR))
elif sys.argv[1] == "sockets":
    sockets(int(sys.argv[5]))
elif sys.argv[1] == "check":
    # Without counters by queue, the CPU of a queue stands for it: no two have the same.
    compare(int(sys.argv[5]), "queue" if counters() else "cpu")
elif sys.argv[1] == "cpus":
    compare(int(sys.argv[5]), "cpu")
else:
    ports(sys.argv[5])
