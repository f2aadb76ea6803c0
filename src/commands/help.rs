//! What `--help` and the manual pages say of a command beside its options: one table.

/// The exit code of a command line that is refused; the same for all commands.
pub const USAGE: (u8, &str) = (64, "usage error");

/// What is said of a command beside its options.
pub struct Help {
    command: &'static str,
    /// Paragraphs.
    pub text: &'static str,
    /// The exit codes that mean something of their own, without [`USAGE`].
    pub codes: &'static [(u8, &'static str)],
    /// What else is to be said about them.
    pub more: &'static str,
    /// Lines, each with a command and what it does.
    pub examples: &'static str,
}

impl Help {
    pub fn of(command: &str) -> Option<&'static Self> {
        HELP.iter().find(|help| help.command == command)
    }
}

/// What `--help` says after the options of a command.
pub fn after(command: &str) -> String {
    let Some(help) = Help::of(command) else {
        return String::new();
    };
    let mut text = help.text.to_owned();
    if !help.codes.is_empty() {
        text += "\n\nExit codes:";
        for (code, means) in help.codes.iter().chain([&USAGE]) {
            text += &format!("\n  {code:<4} {means}");
        }
    }
    if !help.more.is_empty() {
        text = text + "\n\n" + help.more;
    }
    text = text + "\n\nExamples:" + help.examples;
    text.trim_start().to_owned()
}

const NONE: Help = Help {
    command: "",
    text: "",
    codes: &[],
    more: "",
    examples: "",
};

const HELP: &[Help] = &[
    Help {
        command: "nicpin",
        codes: &[(0, "in the planned state"), (1, "it could not be reached, or could not be determined"), (2, "check: differs from the plan; plan, apply with --detailed-exitcode: something changes")],
        more: "run and measure end with the status of the command that they run, or with 126 or 127 if it cannot be
started; check --format nagios with that of a monitoring plugin, 0 to 3.",
        examples: "
  nicpin                             do interrupts arrive on the interfaces' own nodes
  nicpin plan                        what would be written, and why; needs no root
  sudo nicpin apply                  write it
  nicpin check                       is the machine still in the planned state
  sudo nicpin restore                restore the settings from before the first apply
  nicpin plan --help                 options and examples of a command
  nicpin help states                 a topic: states, selectors or policy",
        ..NONE
    },
    Help {
        command: "status",
        text: "The worst interface comes first; `nicpin help states` has the states. Interfaces that are
named, and all with -v, are shown in detail: for each vector its affinity (where the
kernel may deliver the interrupt), effective CPU (where it does) and planned CPU.",
        codes: &[(0, "the state was determined, good or bad"), (1, "it could not be determined")],
        more: "For an exit code that depends on the state, use `check`.",
        examples: "
  nicpin                             all interfaces; the same as nicpin status
  nicpin eth2                        one interface, in detail
  nicpin status --all --seconds 0    all vectors, without watching interrupts
  nicpin status --format json        the same facts for programs
  nicpin status --root fixtures/dl980",
    },
    Help {
        command: "plan",
        codes: &[(0, "planned"), (1, "the machine cannot be read or planned"), (2, "with --detailed-exitcode: something would be changed")],
        examples: "
  nicpin plan                        all interfaces, as a table
  nicpin plan --masks eth2           also each file with its mask in hex
  nicpin plan --format sh bond0      the same writes as a shell script
  nicpin plan --explain eth2         the reason for each setting
  nicpin plan --workers eth2         the CPUs that are left for applications
  nicpin plan --root fixtures/dl980  another machine, from its files",
        ..NONE
    },
    Help {
        command: "apply",
        text: "Users other than root need CAP_DAC_OVERRIDE, for the files of root in /proc/irq and
/run/nicpin, and CAP_NET_ADMIN, for RPS, RFS, XPS and channels. plan, check and capture
need neither.",
        codes: &[(0, "in the planned state, changed or not"), (1, "it could not be reached"), (2, "with --detailed-exitcode: reached, and something was changed")],
        examples: "
  nicpin apply                       all interfaces; a second run writes nothing
  nicpin apply --dry-run eth2        what that would write
  nicpin apply --if-present ens2f0   at boot, where the interface may be absent
  nicpin apply --format json eth2    for provisioning: see `changed` in the output
  nicpin plan --format json > p.json; nicpin apply --plan p.json
  nicpin apply --atomic --prove 3    all or nothing; then report where interrupts arrive
  nicpin apply --try 60 eth2         restore after 60 s unless `nicpin confirm` or Enter comes",
        ..NONE
    },
    Help {
        command: "check",
        text: "--format prometheus prints metrics for node_exporter's textfile collector. The file of
--output is complete at any moment, has mode 0644, and keeps the time of the last success
while the machine is not in the planned state. docs/monitoring.md has the metrics,
dist/prometheus the rules for alerts.

--format nagios prints the line of a monitoring plugin, with performance data. Ranges are
those of plugins: 95: alerts below 95. The states isolated, remote and drifted are
critical; any other difference is a warning.",
        codes: &[(0, "in the planned state"), (1, "it could not be determined"), (2, "the machine differs from the plan")],
        more: "With --format nagios, and nowhere else: 0 OK, 1 warning, 2 critical, 3 unknown (the state could not be
determined).",
        examples: "
  nicpin check || nicpin apply       apply again what something else has changed
  nicpin check -q eth2               for scripts: the exit code only
  nicpin check --format nagios --warning 95: --critical 50:
  nicpin check --format prometheus -o /var/lib/prometheus/node-exporter/nicpin.prom",
    },
    Help {
        command: "restore",
        text: "The affinity (smp_affinity) is restored. The kernel moves an interrupt only when its
effective CPU is not in the new affinity: a vector may stay on its present CPU.",
        codes: &[(0, "restored, but for settings that no longer exist"), (1, "a setting could not be restored")],
        examples: "
  nicpin restore                     restore the settings from before the first apply
  nicpin restore --format json       for provisioning: see `changed` in the output",
        ..NONE
    },
    Help {
        command: "confirm",
        codes: &[(0, "the settings stay"), (1, "there was nothing to confirm, or they could not be kept")],
        examples: "
  nicpin confirm                     keep what `apply --try` has set
  nicpin apply --try 60 < /dev/null && ping -c 3 192.0.2.1 && nicpin confirm
                                     in a script, without a terminal",
        ..NONE
    },
    Help {
        command: "watch",
        text: "Applies once, and again after what undoes affinity: interfaces that are opened, closed,
added or removed, ethtool -L, drivers, CPUs that go offline and online, resume, a restart
of irqbalance, a changed policy file. It waits for 200 ms without a further event (2 s at
most), applies as a child process, and does so every 5 minutes without one. Runs that take
more than 5 % of a core over a minute are 2 s apart. Virtual links cause no run.

A setting to which the same value is restored three times in ten minutes, without an event
of the kernel in between, is not restored for an hour, then two, four and so on, with a
warning. Nothing is written while `apply --try` waits for its confirmation, and from
`nicpin restore` to the next `nicpin apply`. `nicpin status` shows the last five runs.

SIGHUP: read the policy file again. SIGUSR1: run at once. SIGTERM: end; settings stay.",
        codes: &[(0, "ended by SIGTERM or SIGINT"), (1, "it could not begin to watch, or another watcher runs")],
        more: "What a run cannot write is reported and tried again.",
        examples: "
  systemctl enable --now nicpin-watch    as a service
  nicpin watch --observe                 write nothing: report what differs after each event
  nicpin watch --guard driver:mlx5_core  also restore what other programs write, at once",
    },
    Help {
        command: "measure",
        text: "CPU times are in the ticks of /proc/stat, 10 ms: short samples are coarse. An interface
without a device (veth0, lo) has counters but no node and no vectors; it is measured if it
is named. CMD's standard output goes to standard error: standard output has the report only.

With --format json each sample is one line, an object of the schema nicpin.measure/1. With
CMD and --seconds there is one every N seconds, then one of the whole run, with `whole`.

Ctrl-C ends the measurement with the report so far.",
        codes: &[(0, "measured"), (1, "could not be measured")],
        more: "With CMD the status is CMD's, or 126 if it cannot be executed, 127 if there is no such command, 128
and the number of the signal that killed it.",
        examples: "
  nicpin measure eth2                        one second of eth2
  nicpin measure --watch eth2                one sample after the other, until interrupted
  nicpin measure -s 10 --format json         ten seconds of all interfaces, as one line of JSON
  nicpin measure eth2 -- iperf3 -c server    while iperf3 runs",
    },
    Help {
        command: "compare",
        text: "Near is the interface's own node, far the node with the greatest distance from it; CMD
gets CPUs and memory there as with `nicpin run`, and its standard output goes to standard
error. Interrupts are not moved: apply first, or compare before and after. Gbit/s is the
sum of received and sent, from the interface's counters; CPU time of the machine and of
softirqs is that of all CPUs, other work included. Each figure has its median, mean,
standard deviation, minimum and maximum, and the ratio of the means with its standard
deviation. The order is near, far, far, near, near and so on: what changes with time
weighs on both. Ctrl-C ends the comparison with the report of the runs that have ended.",
        codes: &[(0, "compared"), (1, "could not be compared (such as without a far node), CMD failed, or interrupted"), (126, "CMD cannot be executed"), (127, "there is no such command")],
        examples: "
  nicpin compare eth2 -- iperf3 -c server            five runs on each node, in turn
  nicpin compare --runs 10 eth2 -- iperf3 -c server -R
  nicpin compare --far 2 eth2 -- ./client            far is node 2
  nicpin compare --near 0 --far 1 veth0 -- ./client  an interface without a node
  nicpin compare --export-markdown t.md eth2 -- ./client   also the table, for a report
  nicpin compare --format json eth2 -- ./client      each run, for programs",
        ..NONE
    },
    Help {
        command: "capture",
        text: "The file is a gzip-compressed tar archive of the files that nicpin reads. It holds no
hardware or IP addresses or GUIDs (others are in their places), host name, serial numbers,
processes, comments of configuration files or places of irqbalance's scripts. It does hold
the names of interfaces, of tuned profiles and of .link files, the policy with its
patterns of names, and, as a class of hardware needs them, PCI ids and the kernel's
release. All counts in /proc/interrupts are 0, as no plan depends on them: the same
machine gives the same bytes. What is left out or renamed is listed on standard error.",
        examples: "
  nicpin capture -o machine.tar.gz              to attach to a bug report
  nicpin capture --redact-names -o m.tar.gz     without names that the site gave
  nicpin plan --root machine.tar.gz             the plan of that machine, on any other
  ssh machine nicpin capture > machine.tar.gz   without a file on the machine
  mkdir machine; tar -C machine -xzf machine.tar.gz   to read it, or to make a fixture",
        ..NONE
    },
    Help {
        command: "run",
        text: "CMD replaces nicpin (exec): it gets all signals, and the exit status is CMD's. It runs on
the CPUs of the node to which the plan sends no interrupts if they are at least half of
its CPUs, else on all of them; on isolated CPUs only if --cpus names them.",
        codes: &[(1, "the interface has no such node"), (126, "CMD cannot be executed"), (127, "there is no such command")],
        more: "Otherwise the status is CMD's.",
        examples: "
  nicpin run eth2 -- iperf3 -s                  on eth2's node, on CPUs without interrupts
  nicpin run --far eth2 -- iperf3 -s            on the node farthest from it, to compare
  nicpin run --memory preferred eth2 -- redis   may use other nodes' memory when its own is full
  nicpin run --cpus 8-11 eth2 -- ./worker       these CPUs, and the memory of eth2's node
  nicpin run --dry-run eth2                     only print the CPUs and the memory
  nicpin run --dry-run --root fixtures/dl980 eth2",
    },
    Help {
        command: "nodes",
        text: "Page counts are allocations since boot (numastat). A dash stands for what the machine
does not report; captures hold no counts.

--bandwidth measures each pair of nodes for 0.25 s: one thread on each core of the first
node reads a buffer in the memory of the second, in order. GB/s are 10^9 bytes per
second, the sum of all threads. The buffer is eight times the L3 caches of the node, at
least 64 MiB and at most 1 GiB or a quarter of the free memory. Measure on an idle
machine: other work lowers the figures, and is slowed down.",
        examples: "
  nicpin nodes                          nodes, memory, distances, interfaces
  nicpin nodes --bandwidth              and the rate at which each node reads the others' memory
  nicpin nodes --format json            for programs
  nicpin nodes --root fixtures/dl980    another machine, from its files",
        ..NONE
    },
    Help {
        command: "fleet",
        text: "FILE is the output of `nicpin check --json` or `nicpin plan --json`, of one host or of
many, a capture (`nicpin capture`), a tree of a machine, a directory of these, - for a
stream on standard input, or @LIST for a file with one path a line. A host has the name
that its lines begin with, as clush and pdsh print them (`h1: {`), else the host name in
its JSON, else the name of the file. A capture is checked with the policy in it.

Hosts are grouped by hardware class, by plan and by the reason why they are not as
planned; those of an odd class or with an odd plan are named with what differs. Hosts are
lists that `nodeset -f` takes. A file that cannot be read is named, and the rest goes on.",
        codes: &[(0, "all hosts are as planned"), (1, "the state of a host could not be determined, or something could not be read"), (2, "some hosts differ from their plan")],
        examples: "
  clush -w @all nicpin check --json | nicpin fleet -
  nicpin fleet captures/                         all captures of a directory
  nicpin fleet --json @hosts.list                for programs
  nicpin fleet fixtures/dl980 fixtures/x460 -v   also the hosts of each class",
        ..NONE
    },
    Help {
        command: "flow",
        text: "SRC and DST are the ends of a flow as its packets arrive: DST is this machine. The answer
follows the device's ntuple filters, its RSS hash, key and table, the affinity of the
queue's IRQ, NAPI threads and RPS, as they are now. What cannot be known is named, never
guessed, and the exit code is 1.

With `-` connections are read from standard input as `ss -tinH` prints them; those of this
machine with itself are left out. A VLAN stands for the interface below it, a bond for
each of its ports: the sender or the switch chooses which a packet arrives on. Of what a
tunnel carries, the card sees the packets around it: ask about those.",
        examples: "
  nicpin flow eth2 10.0.0.1:5201 10.0.0.2:40001       queue, IRQ and CPU of one flow
  nicpin flow eth2 10.0.0.1 10.0.0.2:5201 --to-cpu 9  source ports that arrive on CPU 9
  ss -tinH | nicpin flow eth2 -                       how all connections spread
  nicpin flow --udp bond0 10.0.0.1:53 10.0.0.2:53     each port of a bond",
        ..NONE
    },
    Help {
        command: "draw",
        text: "The picture follows the viewer's light or dark colours. Each interface has a letter, and
each CPU is labelled with its queues: A3 is queue 3 of interface A. Point at a CPU to see
all of its queues.",
        examples: "
  nicpin draw -o machine.svg                  this machine, for a browser
  nicpin draw eth2 > eth2.svg                 one interface
  nicpin draw --root fixtures/dl980 -o dl980.svg
  nicpin draw --planned --no-lines            as planned, without lines
  nicpin draw --irq-cores 2 -o two.svg        with other options
  rsvg-convert -o machine.png machine.svg     an image of it, or with -f pdf a page",
        ..NONE
    },
    Help {
        command: "completions",
        text: "The script is made from the same definitions as --help.",
        examples: "
  nicpin completions bash > /etc/bash_completion.d/nicpin
  nicpin completions zsh > /usr/local/share/zsh/site-functions/_nicpin
  nicpin completions fish > /etc/fish/completions/nicpin.fish",
        ..NONE
    },
    Help {
        command: "man",
        text: "Pages are made from the same definitions as --help: nicpin-COMMAND(8) for each command and
nicpin-TOPIC(7) for each topic.",
        examples: "
  nicpin man | man -l -                          the page of nicpin
  nicpin man plan | man -l -                     the page of nicpin plan
  nicpin man nicpin.toml | man -l -              the page of the policy file
  nicpin man states | man -l -                   the page of a topic
  nicpin man --into /usr/local/share/man         all pages, in man5, man7 and man8",
        ..NONE
    },
    Help {
        command: "irqbalance-policy",
        text: "irqbalance's --policyscript= takes the path of a program, without arguments, or of a
directory of programs: install dist/irqbalance/nicpin-irqbalance-policy, name it in
irqbalance's arguments (`nicpin plan` prints the line, and the file of this distribution
that it belongs in), and restart irqbalance. The exit code is 0 whether a line is printed
or not; that of the script is 1 where none is, which means no policy to irqbalance.",
        examples: "
  nicpin irqbalance-policy /sys/bus/pci/devices/0000:3b:00.0 71    as irqbalance runs it
  IRQBALANCE_ARGS=\"--policyscript=/usr/lib/nicpin/nicpin-irqbalance-policy\"",
        ..NONE
    },
    Help {
        command: "help",
        examples: "
  nicpin help plan         options and examples of a command
  nicpin help states       what the states mean
  nicpin help selectors    how to name interfaces
  nicpin help policy       the settings of /etc/nicpin.toml",
        ..NONE
    },
];
