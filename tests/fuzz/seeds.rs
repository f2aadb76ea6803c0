//! Seeds of the fuzz targets: the files of the shipped machines, inputs that failed before (`found/TARGET/`), and inputs
//! that reach much of the code (`corpus/TARGET/`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::targets;

/// One CPU, one card, and what a capture has beside the files of a machine.
pub(crate) const SMALL_MACHINE: &str = "\
/proc/interrupts=            CPU0       CPU1 \\n  9:    1    0   IO-APIC   9-fasteoi   acpi\\n 24:    1    7   PCI-MSIX-0000:41:00.0   0-edge      eth0-TxRx-0\\n
/proc/irq/24/smp_affinity=3\\n
/proc/irq/24/effective_affinity_list=0\\n
/proc/812/stat=812 (irqbalance) S 1 812 812 0 -1 4194560 1200 0 3 0 15 20 0 0 20 0 2 0 611 0 0\\n
/proc/700/stat=700 (tuned) S 1 700 700 0 -1 4194560 1200 0 3 0 15 20 0 0 20 0 2 0 612 0 0\\n
/etc/default/irqbalance=#OPTIONS=\\nIRQBALANCE_ARGS=\"-t 5 --policyscript=/etc/policies\"\\n
/etc/policies/nicpin-irqbalance-policy=
/etc/tuned/active_profile=site\\n
/etc/tuned/site/tuned.conf=[main]\\ninclude=site,base\\n
/usr/lib/tuned/base/tuned.conf=[scheduler]\\nisolated_cores=1\\n
/etc/systemd/network/10-net.link=[Link]\\nIRQAffinityPolicy=spread\\n
/etc/systemd/network/20-net.link.d/irq.conf=[Link]\\nIRQAffinityPolicy=single\\n
/usr/bin/google_set_multiqueue=
/sys/class/net/eth0->../../devices/pci0000:40/0000:41:00.0/net/eth0
/sys/devices/pci0000:40/0000:41:00.0/msi_irqs/24=msix\\n
/sys/devices/pci0000:40/0000:41:00.0/numa_node=0\\n
/sys/devices/pci0000:40/0000:41:00.0/class=0x020000\\n
/sys/devices/pci0000:40/0000:41:00.0/current_link_speed=2.5 GT/s PCIe\\n
/sys/devices/pci0000:40/0000:41:00.0/current_link_width=1\\n
/sys/devices/pci0000:40/0000:41:00.0/max_link_speed=8.0 GT/s PCIe\\n
/sys/devices/pci0000:40/0000:41:00.0/max_link_width=4\\n
/sys/devices/pci0000:40/0000:41:00.0/net/eth0/threaded=1\\n
/sys/devices/pci0000:40/0000:41:00.0/net/eth0/dev_port=0\\n
/sys/devices/pci0000:40/0000:41:00.0/net/eth0/flags=0x1003\\n
/sys/devices/pci0000:40/0000:41:00.0/net/eth0/mtu=1500\\n
/sys/devices/pci0000:40/0000:41:00.0/local_cpulist=0-1\\n
/sys/devices/pci0000:40/0000:41:00.0/driver->../../../bus/pci/drivers/igb
/sys/devices/pci0000:40/0000:41:00.0/subsystem->../../../bus/pci
/sys/devices/pci0000:40/0000:41:00.0/net/eth0/device->../..
/sys/devices/pci0000:40/0000:41:00.0/net/eth0/operstate=up\\n
/sys/devices/pci0000:40/0000:41:00.0/net/eth0/speed=1000\\n
/sys/devices/pci0000:40/0000:41:00.0/net/eth0/queues/rx-0/rps_cpus=0\\n
/sys/devices/pci0000:40/0000:41:00.0/net/eth0/queues/rx-0/rps_flow_cnt=0\\n
/sys/devices/pci0000:40/0000:41:00.0/net/eth0/queues/tx-0/xps_cpus=0\\n
/sys/devices/system/cpu/online=0-1\\n
/sys/devices/system/cpu/possible=0-1\\n
/sys/devices/system/cpu/cpu0/topology/thread_siblings_list=0\\n
/sys/devices/system/cpu/cpu0/cache/index3/level=3\\n
/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list=0-1\\n
/sys/devices/system/node/node0/cpulist=0-1\\n
/sys/devices/system/node/node0/distance=10\\n
/nicpin/ethtool/eth0/channels={\"max_rx\":0,\"max_tx\":0,\"max_other\":0,\"max_combined\":2,\"rx\":0,\"tx\":0,\"other\":0,\"combined\":1}\\n
/nicpin/ethtool/eth0/features={\"ntuple\":false}\\n
/nicpin/ethtool/eth0/driver={\"version\":\"6.12.0\",\"firmware\":\"N/A\"}\\n
/nicpin/ethtool/eth0/rss={\"function\":1,\"table\":\"queues 2, entries 8, table 0 1\"}\\n
/nicpin/netlink/eth0={\"queues\":[{\"direction\":\"rx\",\"id\":0,\"napi\":1},{\"direction\":\"tx\",\"id\":0,\"napi\":1}],\"napis\":[{\"id\":1,\"irq\":24,\"pid\":612}]}\\n
/nicpin/threads/eth0=[{\"pid\":612,\"napi\":1,\"affinity\":\"3\"}]\\n
/sys/fs/cgroup/a/cpuset.cpus.partition=isolated\\n
/sys/fs/cgroup/a/cpuset.cpus.effective=1\\n
/sys/bus/pci/devices/0000:41:00.0->../../../devices/pci0000:40/0000:41:00.0
/sys/bus/pci/devices/0000:42:00.0/class=0x010802\\n
/sys/bus/pci/devices/0000:42:00.0/numa_node=0\\n
";

pub(crate) fn of(target: &str) -> BTreeSet<Vec<u8>> {
    let text = |ends: &[&str]| -> BTreeSet<Vec<u8>> {
        let files = machines().into_iter().flat_map(|machine| files(&machine));
        let wanted =
            files.filter(|path| ends.iter().any(|end| path.to_string_lossy().ends_with(end)));
        wanted.map(|path| fs::read(path).unwrap()).collect()
    };
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect::<Vec<_>>()
    };
    let mut seeds = match target {
        "cpulist" => text(&["list", "/online", "/possible"]),
        "cpumask" => text(&["affinity", "_cpus"]),
        "interrupts" => text(&["/interrupts"]),
        "policy" => [
            top().join("dist/nicpin.toml"),
            top().join("fixtures/policies/x460-group.toml"),
        ]
        .map(|path| fs::read(path).unwrap())
        .into(),
        "plan" => ["two-node", "two-socket-mlx4", "x460"]
            .map(|name| fs::read(top().join(format!("fixtures/expected/{name}.json"))).unwrap())
            .into(),
        "fleet" => [fs::read(top().join("fixtures/expected/two-node.json")).unwrap()].into(),
        "netlink" | "irqbalance" | "hostile" => BTreeSet::new(),
        "ethtool" => text(&["/channels"]),
        "capture" => [
            targets::tar(SMALL_MACHINE),
            targets::compressed(&targets::tar(SMALL_MACHINE)),
        ]
        .into(),
        "machine" => ["two-node", "two-socket-mlx4", "tg3-and-ixgbe"]
            .map(|name| in_text(&top().join("fixtures").join(name)).into_bytes())
            .into(),
        _ => panic!("{target} has no seeds"),
    };
    seeds.extend(match target {
        "cpulist" => words(&["0-31:1/2", " 3 , 1-2 ", "0-65535", "(null)\n", ""]),
        "cpumask" => words(&["00000000,000000f0", "0xf00", "1,", ",f", "f0000000,00000000\n"]),
        "policy" => words(&[
            "[[rule]]\nmatch = { driver = 'mlx5*', node = 1, speed = '>=25000' }\nset = { irq-cores = 4, rps = 'off' }\n",
            "[defaults]\nscope = '0-3'\nexclude = '0'\ngroup = { mask = 'f0' }\nrfs = 32768\nchannels = 'auto'\n",
        ]),
        "netlink" => words(&[
            r#"{"queues":[{"direction":"rx","id":0,"napi":8193},{"direction":"tx","id":1}],"napis":[{"id":8193,"irq":46,"pid":612}]}"#,
        ]),
        "irqbalance" => words(&[
            "SLEEP 10 IRQ 71 LOAD 0 DIFF 17 CLASS 4 IRQ 9 LOAD 5 DIFF 0 CLASS 0 BANNED 00000000,00000000",
            "SLEEP 1 BANNED ",
        ]),
        "fleet" => {
            let document = |class: &str, node: &str| {
                format!(
                    "{{\"schema\": \"nicpin.check/1\", \"hash\": \"1\", \"class\": \"{class}\", \"host\": {{\"name\": \"db 1\", \
                     \"online\": \"0-3\", \"cores\": 2, \"possible\": 4, \"isolated\": \"\", \"nohz_full\": \"\", \"nodes\": \
                     [{{\"node\": 0, \"cpus\": \"0-3\"}}]}}, \"interfaces\": [{{\"name\": \"eth0\", \"driver\": \"igb\", \"device\": \
                     \"0000:41:00.0\", \"node\": {node}, \"candidates\": \"0-3\", \"rx_queues\": 2, \"tx_queues\": 2}}], \
                     \"verdict\": \"differs\", \"state\": \"drifted\", \"differs\": [{{\"reason\": \"moved-by-other\"}}], \
                     \"other_tools\": [\"irqbalance\"]}}"
                )
            };
            let (one, two) = (document("a", "0"), document("b", "null"));
            let lines = format!("h1: {one}\nh1: {one}\nh2: {{\nh3: {two}\nclush: h4: exited with exit code 255\n[{two},\n{one}]");
            let ansible = format!("{{\"plays\": [{{\"hosts\": {{\"h1\": {{\"check\": {one}}}, \"h2\": {{\"failed\": true}}}}}}]}}");
            words(&[&lines, &ansible])
        }
        "machine" => words(&[SMALL_MACHINE]),
        // Each base, and each kind of change at some files.
        "hostile" => (0..12_u8).map(|at| vec![at % 3, 7 * at, at % 12, 5 * at, 3 * at, at]).collect(),
        _ => Vec::new(),
    });
    for kept in ["found", "corpus"] {
        let kept = top().join("tests/fuzz").join(kept).join(target);
        seeds.extend(files(&kept).into_iter().map(|path| fs::read(path).unwrap()));
    }
    seeds
}

/// The project's directory, from whichever package this is compiled in.
pub(crate) fn top() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above
        .map(Path::to_owned)
        .find(|top| top.join("fixtures/two-node").is_dir())
        .unwrap()
}

pub(crate) fn machines() -> Vec<PathBuf> {
    ["two-socket-mlx4", "x460", "dl980", "two-node", "wide"]
        .map(|name| top().join("fixtures").join(name))
        .into()
}

/// Files and links below a directory; none if it does not exist.
fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let Ok(entries) = fs::read_dir(directory) else {
        return found;
    };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !path.is_symlink() {
            found.extend(files(&path));
        } else {
            found.insert(path);
        }
    }
    found
}

/// As the target `machine` reads it.
pub(crate) fn in_text(tree: &Path) -> String {
    let line = |path: PathBuf| {
        let name = format!("/{}", path.strip_prefix(tree).unwrap().display());
        match fs::read_link(&path) {
            Ok(target) => format!("{name}->{}\n", target.display()),
            Err(_) => format!(
                "{name}={}\n",
                fs::read_to_string(&path).unwrap().replace('\n', "\\n")
            ),
        }
    };
    files(tree).into_iter().map(line).collect()
}
