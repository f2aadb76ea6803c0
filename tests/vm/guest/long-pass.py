"""long-pass.py: some seventy events under nicpin-watch.service without --guard, in two random orders, irqbalance restarted among
them. After each the plan is back; prints how long that took. Before most of them somebody moves the card's IRQs, which nothing
but the event announces.

usage: long-pass.py SEED SECONDS

SECONDS: within which the plan has to be back after each event.
"""
import glob, importlib.util, os, random, re, sys, time

SEED, LIMIT = int(sys.argv[1]), float(sys.argv[2])
SPEC = importlib.util.spec_from_file_location("random_events", "/payload/random-events.py")
here = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(here)
POLICY = "/etc/nicpin.toml"
HOPELESS = 20


def spoil(nic):
    for irq in here.queue_irqs(nic):
        here.write(f"/proc/irq/{irq}/smp_affinity_list", "0")


def down(nic):
    """Its IRQs are moved while it is down, as some drivers do themselves."""
    here.run("ip", "link", "set", "dev", nic, "down")
    spoil(nic)
    here.run("ip", "link", "set", "dev", nic, "up")


def bond(nic):
    here.run("ip", "link", "add", "bond9", "type", "bond")
    here.run("ip", "link", "set", "dev", nic, "down")
    here.run("ip", "link", "set", "dev", nic, "master", "bond9")
    time.sleep(1)
    here.run("ip", "link", "set", "dev", nic, "nomaster")
    here.run("ip", "link", "del", "bond9")
    here.run("ip", "link", "set", "dev", nic, "up")


# Each event changes something, whatever was before it: what changes nothing is no event.

def mtu(nic):
    here.mtu(nic, 1400 if here.read(f"/sys/class/net/{nic}/mtu") == "1500" else 1500)


def ring(nic):
    now = re.findall(r"^RX:\s+(\d+)", here.run("ethtool", "-g", nic).stdout, re.M)
    here.ring(nic, 256 if now and now[-1] == "512" else 512)


def channels(nic):
    now = here.queues(nic)
    here.channels(nic, now - 1 or here.CHANNELS[nic])
    # igb with virtual functions has one channel, and refuses others.
    if here.queues(nic) == now:
        here.flap(nic)


def qdisc(nic):
    if "mqprio" in here.run("tc", "qdisc", "show", "dev", nic).stdout:
        here.no_qdisc(nic)
    # igb with virtual functions has one transmit queue, whatever it receives on.
    elif len(glob.glob(f"/sys/class/net/{nic}/queues/tx-*")) > 1:
        here.mqprio(nic)
    else:
        here.flap(nic)


def virtual_functions(count):
    here.virtual_functions(0 if here.read(here.PCI["nic1"] + "/sriov_numvfs") != "0" else count)


def cpu(number):
    file = f"/sys/devices/system/cpu/cpu{number}/online"
    now = here.read(file)
    here.cpu(number, 1 - int(now))
    # The only CPU of a partition cannot go (EBUSY).
    if here.read(file) == now:
        here.flap("nic2")


def partition(cpus, kind):
    if os.path.isdir(here.CGROUP):
        here.no_partition()
    else:
        here.partition(cpus, kind)


def policy():
    here.write(POLICY, "" if here.read(POLICY) else '[defaults]\nexclude = "1"\n')


def events():
    """Each with the interface whose IRQs are moved before it. Each may come at any place."""
    for nic in here.NICS[:4]:
        for event in (here.flap, down, mtu, mtu, here.rebind, bond):
            yield nic, (event, nic)
        for event, pause in ((here.hotplug, 0.1), (here.rename, 0.5), (here.namespace, 1)):
            yield nic, (event, nic, pause)
    for nic in here.CHANNELS:
        for event in (channels, channels, channels, channels, qdisc, qdisc):
            yield nic, (event, nic)
    for _ in range(2):
        yield "nic1", (ring, "nic1")
        yield "nic1", (virtual_functions, 2)
        yield "nic2", (cpu, 1)
        yield "nic2", (cpu, 3)
        yield "nic3", (partition, "3", "root")
        yield "nic3", (partition, "1", "isolated")
        yield "nic0", (policy,)
        yield "nic2", (here.suspend,)
    for at in range(6):
        yield here.NICS[at % 4], (here.irqbalance, "restart")


def one_order(rng, figures):
    """What is wrong in one order of all events."""
    wrong, some = [], list(events())
    rng.shuffle(some)
    for nth, (nic, event) in enumerate(some, 1):
        pause, what = rng.choice([0, 0.5, 1, 3]), here.shown(event)
        spoil(nic)
        event[0](*event[1:])
        began = time.monotonic()
        is_back = here.wait(HOPELESS, lambda: here.run("nicpin", "check", "--exact").returncode == 0 and not here.Judge.forbidden())
        took = time.monotonic() - began
        figures.append(took)
        said = here.Judge.accused()
        if not is_back or took > LIMIT or said:
            wrong.append(what)
            print(f"FAIL: {what}: {'back' if is_back else 'not back'} after {took:.1f} s; {said}")
            print(here.run("nicpin", "check", "--exact").stdout)
            print(here.journal(12))
        print(f"{nth:3} {what:40} {took:5.1f} s, then {pause} s", flush=True)
        time.sleep(pause)
    return wrong


def main():
    print(f"seed {SEED}")
    rng, figures, wrong = random.Random(SEED), [], []
    for order in (1, 2):
        print(f"--- order {order}")
        here.calm()
        here.write(POLICY, "")
        here.irqbalance("start")
        here.start()
        time.sleep(5)
        wrong += one_order(rng, figures)
    here.irqbalance("stop")
    figures.sort()
    print(f"seed {SEED}: {len(figures)} events, {len(wrong)} not back in {LIMIT:.0f} s; median {figures[len(figures) // 2]:.1f} s, slowest {figures[-1]:.1f} s")
    print(f"{len(figures)} checks, {len(wrong)} failed")
    return 1 if wrong or not figures else 0


sys.exit(main())
