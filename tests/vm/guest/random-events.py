"""random-events.py: random events in bursts, under nicpin-watch.service with --guard. After the last of each burst the plan is
back, no queue's vector is on a forbidden CPU, and nobody is accused of writing who did not. After each fifth burst and in the
end `restore` gives back the first state.

usage: random-events.py SEED EVENTS [SECONDS [APART]]

SECONDS: within which the plan has to be back (2), from the last event, or from when the watcher was ready, if that is later. A
watcher that used 3 s of CPU time within a minute has 2 s more, since it keeps its runs that far apart then. APART: so many
seconds are between two events, and the watcher is never killed; from 5 on, the plan has to be back after each event. Then
what the watcher costs while nothing happens is held, too.

A sequence that fails is tried again in shorter forms, each from the state without events, and the shortest is printed.
"""
import glob, json, os, random, re, signal, subprocess, sys, threading, time

SEED, EVENTS = int(sys.argv[1]), int(float(sys.argv[2]))
LIMIT = float(sys.argv[3]) if len(sys.argv) > 3 else 2.0
APART = float(sys.argv[4]) if len(sys.argv) > 4 else None
HOPELESS = max(15.0, LIMIT + 5)
UNIT = "nicpin-watch.service"
NICS = os.environ["NICS"].split()
CGROUP = "/sys/fs/cgroup/random-events"
CHANNELS = {"nic0": 4, "nic1": 4}       # those that `ethtool -L` can change, and how many they have


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def write(path, text):
    try:
        with open(path, "w") as file:
            file.write(text)
        return True
    except OSError:
        return False


def read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def wait(seconds, is_done):
    end = time.monotonic() + seconds
    while not (done := is_done()) and time.monotonic() < end:
        time.sleep(0.05)
    return done


def pci(nic):
    path = os.path.realpath(f"/sys/class/net/{nic}/device")
    while len(path) > 1 and not os.path.exists(path + "/class"):
        path = os.path.dirname(path)
    return path


def queues(nic):
    return len(glob.glob(f"/sys/class/net/{nic}/queues/rx-*"))


PCI = {nic: pci(nic) for nic in NICS}
QUEUES = {nic: queues(nic) for nic in NICS}


def is_open(nic):
    return int(read(f"/sys/class/net/{nic}/flags") or "0", 16) & 1


def irqs(nic):
    return sorted(int(name) for name in os.listdir(PCI[nic] + "/msi_irqs")) if os.path.isdir(PCI[nic] + "/msi_irqs") else []


def queue_irqs(nic):
    """Those of queues: the others are for control, which nobody plans."""
    name = re.compile(r"nic\d.*(TxRx|rxtx|rx-\d|tx-\d)|virtio\d+-(in|out)put")
    return [irq for irq in irqs(nic) if name.search(read(f"/sys/kernel/irq/{irq}/actions"))]


def cpus(text):
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


# Each event may be at any place of a sequence, and ends with the interface open.

def channels(nic, count):
    run("ethtool", "-L", nic, "combined", str(count))


def ring(nic, size):
    run("ethtool", "-G", nic, "rx", str(size))


def rss(nic, queues):
    run("ethtool", "-X", nic, *(["equal", str(queues)] if queues else ["default"]))


def mtu(nic, size):
    run("ip", "link", "set", "dev", nic, "mtu", str(size))


def flap(nic):
    run("ip", "link", "set", "dev", nic, "down")
    run("ip", "link", "set", "dev", nic, "up")


def rebind(nic):
    # The netdev's own device: a virtio card is bound below its PCI function.
    device = os.path.realpath(f"/sys/class/net/{nic}/device")
    driver = os.path.realpath(device + "/driver")
    write(driver + "/unbind", os.path.basename(device))
    write(driver + "/bind", os.path.basename(device))
    wait(20, lambda: is_open(nic))


def hotplug(nic, pause):
    write(PCI[nic] + "/remove", "1")
    time.sleep(pause)
    write("/sys/bus/pci/rescan", "1")
    wait(20, lambda: is_open(nic))


def namespace(nic, pause):
    run("ip", "netns", "add", "elsewhere")
    run("ip", "link", "set", "dev", nic, "netns", "elsewhere")
    time.sleep(pause)
    run("ip", "-n", "elsewhere", "link", "set", "dev", nic, "netns", "1")
    run("ip", "link", "set", "dev", nic, "up")
    run("ip", "netns", "del", "elsewhere")
    wait(20, lambda: is_open(nic))


def rename(nic, pause):
    run("ip", "link", "set", "dev", nic, "down")
    run("ip", "link", "set", "dev", nic, "name", "renamed0")
    time.sleep(pause)
    run("ip", "link", "set", "dev", "renamed0", "name", nic)
    run("ip", "link", "set", "dev", nic, "up")


def cpu(number, on):
    write(f"/sys/devices/system/cpu/cpu{number}/online", str(on))


def partition(cpus, kind):
    write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset")
    os.makedirs(CGROUP, exist_ok=True)
    write(CGROUP + "/cpuset.cpus.partition", "member")
    write(CGROUP + "/cpuset.cpus", cpus)
    write(CGROUP + "/cpuset.cpus.partition", kind)


def no_partition():
    if os.path.isdir(CGROUP):
        os.rmdir(CGROUP)


def threaded(nic, on):
    # Nothing announces it: the event after it does.
    write(f"/sys/class/net/{nic}/threaded", str(on))
    flap(nic)


def mqprio(nic):
    # If the kernel refuses for want of queues, it sets all XPS to 0, too, and announces that to nobody.
    if len(glob.glob(f"/sys/class/net/{nic}/queues/tx-*")) < 2:
        return
    run("tc", "qdisc", "replace", "dev", nic, "root", "mqprio", "num_tc", "2", "map", *"0000000011111111", "queues", "1@0", "1@1", "hw", "0")


def no_qdisc(nic):
    run("tc", "qdisc", "del", "dev", nic, "root")


def filters(nic, count):
    run("tc", "qdisc", "add", "dev", nic, "clsact")
    for at in range(count):
        run("tc", "filter", "add", "dev", nic, "ingress", "pref", str(at + 1), "matchall", "action", "drop")
    run("tc", "qdisc", "del", "dev", nic, "clsact")


def virtual_functions(count):
    write(PCI["nic1"] + "/sriov_numvfs", "0")
    write(PCI["nic1"] + "/sriov_numvfs", str(count))


def irqbalance(verb):
    run("systemctl", "reset-failed", "irqbalance.service")
    run("systemctl", verb, "irqbalance.service")


def suspend():
    write("/sys/power/pm_test", "core")
    write("/sys/power/state", "mem")
    write("/sys/power/pm_test", "none")


def kill(pause):
    """Kills the watcher or what it runs at a random moment of the events that follow."""
    def later():
        time.sleep(pause)
        found = [int(pid) for pid in run("pgrep", "-x", "nicpin").stdout.split()]
        if found:
            try:
                os.kill(random.Random(pause).choice(found), signal.SIGKILL)
            except ProcessLookupError:
                pass
    threading.Thread(target=later, daemon=True).start()


def writer(nic, at, cpu):
    """Another program that writes one vector, once."""
    all_of = queue_irqs(nic)
    if all_of:
        write(f"/proc/irq/{all_of[at % len(all_of)]}/smp_affinity_list", str(cpu))


def random_event(rng):
    nic = rng.choice(NICS)
    some = rng.choice(list(CHANNELS))
    kinds = [
        lambda: (channels, some, rng.randint(1, CHANNELS[some])),
        lambda: (channels, some, rng.randint(1, CHANNELS[some])),
        lambda: (ring, nic, rng.choice([256, 512, 1024])),
        lambda: (rss, rng.choice(["nic1", "nic2"]), rng.randint(0, 4)),
        lambda: (mtu, nic, rng.choice([1400, 1500])),
        lambda: (flap, nic),
        lambda: (rebind, nic),
        lambda: (hotplug, nic, rng.choice([0, 0.1, 1])),
        lambda: (namespace, nic, rng.choice([0, 0.1, 1])),
        lambda: (rename, nic, rng.choice([0, 0.5])),
        lambda: (cpu, rng.choice([1, 3]), rng.randint(0, 1)),
        lambda: (cpu, rng.choice([1, 3]), 1),
        lambda: (partition, rng.choice(["1", "3", "2-3", "1,3"]), rng.choice(["root", "isolated"])),
        lambda: (no_partition,),
        lambda: (threaded, nic, rng.randint(0, 1)),
        lambda: (mqprio, rng.choice(["nic0", "nic1"])),
        lambda: (no_qdisc, nic),
        lambda: (filters, nic, rng.randint(1, 20)),
        lambda: (virtual_functions, rng.randint(0, 2)),
        lambda: (irqbalance, rng.choice(["start", "stop", "restart"])),
        lambda: (suspend,),
        lambda: (kill, rng.random()),
        lambda: (writer, nic, rng.randrange(16), rng.randrange(4)),
        lambda: (writer, nic, rng.randrange(16), rng.randrange(4)),
    ]
    return rng.choice(kinds)()


def shown(event):
    return f"{event[0].__name__}({', '.join(map(repr, event[1:]))})"


class Judge:
    """What must be true after each burst."""

    def __init__(self):
        self.times, self.writes, self.used = [], {}, []

    def wants(self, event):
        """A setting that a program writes again and again with nothing else in between is rightly said to be fought for: no
        sequence has a third write to one interface in ten minutes."""
        if event[0] is kill and APART is not None:
            return False
        if event[0] is writer:
            recent = [at for at in self.writes.get(event[1], []) if at > time.monotonic() - 600]
            self.writes[event[1]] = recent + [time.monotonic()]
            return len(recent) < 2
        return True

    def after(self, began):
        """What is wrong after a burst whose last event ended at `began`; `None` if nothing is."""
        last = []

        def as_planned():
            # Without a watcher, a plan does not leave out the CPUs of exclusive partitions.
            ran = watcher().get("pid") == of_unit("MainPID") != 0
            last[:] = [run("nicpin", "check", "--exact")]
            # The watcher may have been killed, which the manager does not know at once.
            return ran and last[0].returncode == 0 and watcher().get("pid") == of_unit("MainPID") and not self.forbidden()
        if not wait(HOPELESS, as_planned):
            return self.forbidden() or f"not as planned after {HOPELESS:.0f} s:\n{last[0].stdout}{last[0].stderr}"
        took = time.monotonic() - max(began, of_unit("ActiveEnterTimestampMonotonic") / 1e6)
        self.times.append(took)
        limit = LIMIT + 2 if self.used_in_minute() >= 3 else LIMIT
        return self.accused() or (f"as planned only after {took:.1f} s of {limit:.0f}" if took > limit else None)

    def used_in_minute(self):
        """The CPU time of the watcher in seconds, since the last burst that was a minute ago or its start."""
        now, used = time.monotonic(), of_unit("CPUUsageNSec") / 1e9
        if self.used and used < self.used[-1][1]:
            self.used = []      # started again
        self.used.append((now, used))
        return used - max((earlier for at, earlier in self.used if at <= now - 60), default=0)

    @staticmethod
    def forbidden():
        allowed = cpus(read("/sys/devices/system/cpu/online"))
        if read(CGROUP + "/cpuset.cpus.partition") in ("root", "isolated"):
            allowed -= cpus(read(CGROUP + "/cpuset.cpus"))
        for irq in sum(map(queue_irqs, NICS), []):
            on = cpus(read(f"/proc/irq/{irq}/smp_affinity_list"))
            if not on <= allowed:
                return f"IRQ {irq} may be delivered to CPUs {sorted(on)}, of which {sorted(on - allowed)} are forbidden"
        return None

    @staticmethod
    def accused():
        left = watcher().get("left_alone")
        return f"accused: {left}" if left else None


def of_unit(key):
    """A number that the service manager knows of the watcher."""
    number = run("systemctl", "show", UNIT, f"--property={key}", "--value").stdout.strip()
    return int(number) if number.isdecimal() else 0


def watcher():
    """What the watcher shows of itself."""
    try:
        return json.loads(read("/run/nicpin/watch.json") or "{}")
    except json.JSONDecodeError:
        return {}


def start():
    run("systemctl", "restart", UNIT)


def calm():
    """Undoes the events."""
    no_partition()
    for number in (1, 3):
        cpu(number, 1)
    virtual_functions(0)
    run("ip", "netns", "del", "elsewhere")
    write("/sys/bus/pci/rescan", "1")
    for nic in NICS:
        wait(20, lambda nic=nic: is_open(nic))
        no_qdisc(nic)
        write(f"/sys/class/net/{nic}/threaded", "0")
        mtu(nic, 1500)
        ring(nic, 256)
    for nic, count in CHANNELS.items():
        channels(nic, count)
    for nic in NICS:
        # Some drivers make a queue for each CPU that is online when they are bound.
        if queues(nic) != QUEUES[nic]:
            rebind(nic)
    for nic in ("nic1", "nic2"):
        rss(nic, 0)
    irqbalance("stop")


def state():
    """Every setting by interface, the vectors in the order of the device's list."""
    found = {}
    for nic in NICS:
        found[nic] = [read(f"/proc/irq/{irq}/smp_affinity") for irq in queue_irqs(nic)]
        for path in sorted(glob.glob(f"/sys/class/net/{nic}/queues/*/[rx]ps_*")):
            found[path] = read(path)
    found["flow entries"] = read("/proc/sys/net/core/rps_sock_flow_entries")
    return found


def fails(sequence):
    """What is wrong after a sequence that begins without any event before it."""
    calm()
    start()
    time.sleep(3)
    judge = Judge()
    if wrong := judge.after(time.monotonic()):
        return f"without any event: {wrong}"
    for event, pause in sequence:
        event[0](*event[1:])
        time.sleep(pause)
    return judge.after(time.monotonic())


def shortest(sequence):
    """Removes events while the rest still fails, at most thirty times."""
    tries, size = 30, max(1, len(sequence) // 2)
    while tries and size:
        at = 0
        while at < len(sequence) and tries:
            rest = sequence[:at] + sequence[at + size:]
            tries -= 1
            if rest and fails(rest):
                sequence = rest
            else:
                at += size
        size //= 2
    return sequence


def journal(lines):
    return run("journalctl", "--unit", UNIT, "--lines", str(lines), "--output", "short-monotonic", "--no-hostname").stdout


def costs():
    """What is wrong with the costs of a watcher while nothing happens."""
    pid = of_unit("MainPID")

    def wakeups():
        return int(re.search(r"voluntary_ctxt_switches:\t(\d+)", read(f"/proc/{pid}/status"))[1])
    time.sleep(15)
    before = wakeups()
    time.sleep(10)
    woken = wakeups() - before
    private = sum(int(kib) for kib in re.findall(r"Private_\w+: +(\d+) kB", read(f"/proc/{pid}/smaps_rollup")))
    print(f"idle: {woken} wake-ups in 10 s, {private} kB of private memory")
    # A debug build is larger.
    is_release = os.path.getsize("/usr/bin/nicpin") < 12_000_000
    return "the watcher is not idle" if woken else "the watcher has more than 3 MB" if is_release and private > 3072 else None


def given_back(first):
    """How many things `restore` does not give back; the watcher is stopped."""
    run("systemctl", "stop", UNIT)
    recorded = read("/run/nicpin/state.json")
    restored = run("nicpin", "restore", "-v")
    failed = int(restored.returncode != 0)
    # A pending move shows the affinity before it for a moment (`irq_move_masked_irq`).
    wait(2, lambda: state() == first)
    last = state()
    for key in sorted(first.keys() | last.keys()):
        if first.get(key) != last.get(key):
            failed += 1
            print(f"FAIL: {key}: first {first.get(key)}, restored {last.get(key)}")
    if failed:
        print(f"restore: {restored.returncode}: {restored.stdout}{restored.stderr}", recorded, sep="\n")
    return failed


def main():
    rng, judge = random.Random(SEED), Judge()
    run("systemctl", "stop", UNIT, "irqbalance.service")
    run("nicpin", "restore")
    calm()
    first = state()
    os.makedirs(f"/run/systemd/system/{UNIT}.d", exist_ok=True)
    write(f"/run/systemd/system/{UNIT}.d/guard.conf", "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=\nExecStart=/usr/bin/nicpin watch --guard\n")
    run("systemctl", "daemon-reload")
    start()
    # The first run records the first state.
    if wrong := judge.after(time.monotonic()):
        print(f"FAIL: without any event: {wrong}")
    done, failures, burst, bursts = 0, 0, [], 0
    while done < EVENTS and failures < 5:
        earlier, burst = burst, []
        for _ in range(1 if APART and APART >= 5 else rng.randint(1, 20)):
            event, pause = random_event(rng), rng.choice([0, 0, 0.2, 1])
            if judge.wants(event):
                burst.append((event, pause if APART is None else APART))
        if not burst:
            continue
        for nth, (event, pause) in enumerate(burst, 1):
            event[0](*event[1:])
            ended = time.monotonic()
            if nth < len(burst):
                time.sleep(pause)
        done, bursts = done + len(burst), bursts + 1
        wrong = judge.after(ended)
        if not wrong and not APART and bursts % 5 == 0:
            calm()
            wrong = judge.after(time.monotonic())
            failures += given_back(first)
            start()
            wrong = wrong or judge.after(time.monotonic())
        if APART and bursts > 1:
            time.sleep(max(0, APART - (time.monotonic() - ended)))
        if wrong:
            failures += 1
            print(f"FAIL: seed {SEED}, after {done} events: {wrong}")
            print("  the burst: " + " ".join(f"{shown(event)} {pause}" for event, pause in burst))
            print(journal(25), flush=True)
            again = next((seq for seq in (burst, earlier + burst) if fails(seq)), None)
            if again is None:
                print("  it does not fail again", flush=True)
            else:
                least = shortest(again)
                print("  shortest: " + " ".join(f"{shown(event)} {pause}" for event, pause in least))
                print(f"  fails with: {fails(least)}", flush=True)
            calm()
            start()
            time.sleep(3)
    calm()
    if wrong := judge.after(time.monotonic()) or (costs() if APART else None):
        failures += 1
        print(f"FAIL: in the end: {wrong}")
    failures += given_back(first)
    times = sorted(judge.times)
    changed = [int(number) for number in re.findall(r'"NICPIN_CHANGED":"(\d+)"', run("journalctl", "--unit", UNIT, "--boot", "--output", "json").stdout)]
    print(f"the watcher changed {sum(changed)} settings in {len(changed)} runs")
    if not changed:
        failures += 1
        print("FAIL: no event undid anything")
    ends = [line for line in journal("all").splitlines() if "Main process exited" in line and "status=9/KILL" not in line]
    if ends:
        failures += 1
        print("FAIL: the watcher ended by itself:", *ends, sep="\n  ")
    print(f"seed {SEED}: {done} events in {bursts} bursts, {failures} failures; the plan was back after {times[len(times) // 2]:.1f} s (median), "
          f"{times[-1]:.1f} s (slowest)")
    print(f"{bursts} checks, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
