//! CPUs that cgroup v2 gives to somebody alone: which they are, and what plans, pictures and captures make of them.

use std::path::Path;

use snapbox::{assert_data_eq, str};

use crate::support::captured::Captured;
use crate::support::host::{self, add, codes, mask, of, plan_with, set, vector};
use crate::support::run::{self, MachineTree, assert_line, document, expect, nicpin, note, text};
use crate::support::temporary;
use crate::support::tree::put;
use nicpin::Root;
use nicpin::machine::Role;
use nicpin::plan::NodeSource;
use nicpin::read::cgroups::partitions;

const CGROUPS: &str = "/sys/fs/cgroup";

/// A cgroup as a kernel shows it: its path, the state of its partition, `cpuset.cpus.effective` and, from 6.7 on,
/// `cpuset.cpus.exclusive.effective`.
type Cgroup = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
);

fn make(top: &Path, cgroups: &[Cgroup]) {
    for (path, partition, effective, exclusive) in cgroups {
        let file = |name: &str, text: &str| put(top, &format!("{CGROUPS}/{path}/{name}"), text);
        file("cgroup.procs", "");
        file("cpuset.cpus.partition", partition);
        file("cpuset.cpus.effective", effective);
        if let Some(cpus) = exclusive {
            file("cpuset.cpus.exclusive.effective", cpus);
        }
    }
}

#[test]
fn partitions_of_each_kernel() {
    let cases: [(&str, &[Cgroup], &str, usize); 6] = [
        (
            "no partition",
            &[
                ("system.slice", "member", "0-7", None),
                ("user.slice", "member", "0-7", None),
            ],
            "",
            1,
        ),
        // A partition that has given CPUs to one below it: the kernel leaves these out of its effective CPUs.
        (
            "6.1",
            &[
                ("a", "root", "4-5", None),
                ("a/b", "isolated", "6", None),
                ("a/b/c", "member", "6", None),
                ("a/d", "member", "4-5", None),
                (
                    "a/d/e",
                    "root invalid (Parent is not a partition root)",
                    "4-5",
                    None,
                ),
            ],
            "4-6",
            3,
        ),
        (
            "invalid",
            &[(
                "a",
                "isolated invalid (Cpu list in cpuset.cpus not exclusive)",
                "0-7",
                None,
            )],
            "",
            1,
        ),
        (
            "6.12",
            &[
                ("a", "root", "4-5", Some("4-6")),
                ("a/b", "isolated", "6", Some("6")),
                ("z", "member", "0-3,7", Some("")),
                ("z/y", "member", "0-3,7", Some("")),
            ],
            "4-6",
            3,
        ),
        // A remote partition is below cgroups that are none themselves.
        (
            "remote",
            &[
                ("machine.slice", "member", "0-3,7", Some("4-6")),
                ("machine.slice/guest", "member", "0-3,7", Some("5-6")),
                ("machine.slice/guest/vcpus", "root", "5", Some("5")),
                ("machine.slice/other", "member", "0-3,7", Some("")),
            ],
            "5",
            4,
        ),
        // CPUs that can become exclusive, and are everybody's until then.
        ("reserved", &[("a", "member", "0-7", Some("2-3"))], "", 2),
    ];
    for (name, cgroups, expected, parents) in cases {
        let dir = temporary();
        make(dir.path(), cgroups);
        let found = partitions(&Root::open(dir.path()).unwrap()).unwrap();
        assert_eq!(
            (
                found.cpus.to_string().as_str(),
                found.parents.len(),
                found.cut
            ),
            (expected, parents, false),
            "{name}"
        );
    }
}

#[test]
fn a_plan_leaves_them_out_on_request_only() {
    let machine = MachineTree::of("two-node");
    let before = machine.nicpin(&["plan"]).stdout;
    make(machine.dir(), &[("guest", "root", "5-6", Some("5-6"))]);
    assert_eq!(machine.nicpin(&["plan"]).stdout, before);
    let with = machine.nicpin(&["plan", "--avoid-exclusive", "--format", "json"]);
    let plan: nicpin::Plan = serde_json::from_str(&with.stdout).unwrap();
    let nic1 = of(&plan, "nic1");
    assert_eq!(
        (nic1.candidates.to_string(), nic1.exclusive.to_string()),
        ("4,7".into(), "5-6".into())
    );
    assert_eq!(nic1.left_out.len(), 1);
    assert_eq!(nic1.left_out[0].cpus, set("5-6"));
    assert_data_eq!(
        nic1.left_out[0].why.to_string(),
        str!["in an exclusive cpuset partition"]
    );
    // Programs of others cannot run there.
    assert!(nic1.worker_cpus.is_empty(), "{}", nic1.worker_cpus);
    // XPS says where each CPU sends: it is of those CPUs, too.
    let mut sending = nic1.tx_queues.iter().filter_map(|tx| tx.xps_cpus.as_ref());
    assert!(sending.any(|cpus| cpus.contains(5)));
    let explained = ["plan", "--explain", "--avoid-exclusive", "nic1"];
    expect("exclusive.txt", machine.nicpin(&explained).stdout);

    // By the policy file, and applied.
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    machine.write("/etc/nicpin.toml", "[defaults]\navoid-exclusive = true\n");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    let run = machine.nicpin(&["run", "--dry-run", "nic1"]);
    assert_data_eq!(
        run.stdout,
        str![[r"
node    1, for nic1
CPUs    4,7 (interrupts go to more than half of them: CPUs 4,7; CPUs 5-6 left out: isolated or
        nohz_full, or in an exclusive cpuset partition)
memory  node 1 only

"]]
    );
    machine.write("/etc/nicpin.toml", "");
    assert_eq!(machine.nicpin(&["check"]).code, 2);
    assert_eq!(machine.nicpin(&["check", "--avoid-exclusive"]).code, 0);
    // A vector there is as bad as on an isolated CPU.
    machine.write("/proc/irq/27/smp_affinity", "20\n");
    machine.write("/proc/irq/27/effective_affinity_list", "5\n");
    let status = document(&machine, &["status", "--avoid-exclusive", "nic1"]);
    let nic1 = &status["interfaces"][0];
    assert_eq!(nic1["state"], "isolated");
    let mut vectors = nic1["vectors"].as_array().unwrap().iter();
    let vector = vectors.find(|vector| vector["irq"] == 27).unwrap();
    assert_eq!(vector["on_isolated"], true);
    assert_data_eq!(
        text(vector, "why"),
        str!["effective CPU 5 is in an exclusive cpuset partition"]
    );
}

#[test]
fn nodes_and_pictures_show_them() {
    let machine = MachineTree::of("two-node");
    make(machine.dir(), &[("guest", "isolated", "5-6", Some("5-6"))]);
    expect("exclusive.nodes.txt", machine.nicpin(&["nodes"]).stdout);
    let json = document(&machine, &["nodes"]);
    assert_eq!(
        (
            &json["nodes"][0]["exclusive"],
            &json["nodes"][1]["exclusive"]
        ),
        (&"".into(), &"5-6".into())
    );
    let svg = machine.nicpin(&["draw"]).stdout;
    assert!(
        svg.contains("CPU 5, in an exclusive cpuset partition")
            && svg.contains("or in an exclusive cpuset partition; point at the CPU"),
        "{svg}"
    );
    assert!(
        svg.contains("class=\"cpu isolated\"") && !svg.contains("CPU 5, isolated"),
        "{svg}"
    );
    // The picture is of the plan that was asked for.
    assert!(
        svg.contains("CPU 5, in an exclusive cpuset partition; nic1 queues"),
        "{svg}"
    );
    let avoided = machine
        .nicpin(&["draw", "--planned", "--avoid-exclusive"])
        .stdout;
    assert!(
        avoided.contains("<title>CPU 5, in an exclusive cpuset partition</title>"),
        "{avoided}"
    );
    machine.write("/sys/devices/system/cpu/isolated", "3\n");
    assert!(
        machine
            .nicpin(&["draw"])
            .stdout
            .contains(">isolated, nohz_full or in an exclusive cpuset partition;")
    );
}

#[test]
fn a_node_without_other_cpus_is_as_one_whose_cpus_are_isolated() {
    let mut host = host::machine(3, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    host.topology.nodes.get_mut(&1).unwrap().distances = [(0, 21), (1, 10), (2, 12)].into();
    host.topology.exclusive = set("4-7");
    let avoid: &[(&str, &str)] = &[("avoid-exclusive", "true")];
    let plan = plan_with(&host, avoid, &[]);
    let eth0 = of(&plan, "eth0");
    assert_eq!(
        (eth0.node, eth0.node_source, &eth0.candidates),
        (Some(2), NodeSource::Nearest, &set("8-11"))
    );
    assert_eq!(codes(eth0), ["node-without-cpus"]);
    // Everywhere, or by the policy's own words.
    host.topology.exclusive = set("0-11");
    assert_eq!(
        codes(of(&plan_with(&host, avoid, &[]), "eth0")),
        ["no-usable-cpu", "exclusive-cpus-used"]
    );
    host.topology.exclusive = set("4");
    let named = plan_with(&host, &[avoid, &[("scope", "4-5")]].concat(), &[]);
    assert_eq!(of(&named, "eth0").candidates, set("4-5"));
    assert_eq!(codes(of(&named, "eth0")), ["exclusive-cpus-used"]);
}

#[test]
fn control_vectors_leave_them() {
    let mut host = host::machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 2);
    let mut control = vector(90, Role::Control, None, &mask(&host, &host.topology.online));
    control.effective = Some(set("7"));
    host.interfaces[0].vectors.push(control);
    host.topology.exclusive = set("6-7");
    assert_eq!(host::plan(&host).interfaces[0].vectors[2].cpus, None);
    let plan = plan_with(&host, &[("avoid-exclusive", "true")], &[]);
    let control = &plan.interfaces[0].vectors[2];
    assert_eq!(control.cpus, Some(set("0")));
    assert_data_eq!(
        control.why.to_string(),
        str!["control IRQ; moved off a CPU of an exclusive cpuset partition"]
    );
    assert_eq!((plan.score.on_isolated, plan.score_now.on_isolated), (0, 1));
}

/// Containers and users have names that are nobody else's concern.
#[test]
fn captures_have_them_without_the_names_of_cgroups() {
    let copy = MachineTree::of("two-node");
    make(
        copy.dir(),
        &[
            ("machine.slice", "member", "0-3,7", Some("4-6")),
            ("machine.slice/qemu-acme.scope", "root", "5-6", Some("5-6")),
            ("user-1000.slice", "member", "0-4,7", Some("")),
        ],
    );
    let captured = Captured::of(copy.dir());
    assert_data_eq!(
        &*captured.run.stderr,
        str![[r"
nicpin: cgroups are cgroup0001 to cgroup0003 in the capture

"]]
    );
    let text = captured.text();
    assert!(
        !text.contains("acme") && !text.contains("machine.slice") && !text.contains("user-1000")
    );
    assert!(text.contains("sys/fs/cgroup/cgroup0001/cgroup0002/cpuset.cpus.partition"));
    let plan = |root: &Path| {
        nicpin(&[
            "plan",
            "--avoid-exclusive",
            "--format",
            "sh",
            "--root",
            root.to_str().unwrap(),
        ])
        .stdout
    };
    assert_eq!(plan(&captured.file()), plan(copy.dir()));
    let file = captured.file();
    let nodes = nicpin(&["nodes", "--json", "--root", file.to_str().unwrap()]).json();
    assert_eq!(nodes["nodes"][1]["exclusive"], "5-6");
    let again = Captured::of(&file);
    assert_eq!(
        (again.bytes(), again.run.stderr.as_str()),
        (captured.bytes(), "")
    );
    // With its identity, a machine keeps its names.
    assert!(
        Captured::with(copy.dir(), &["--identify"])
            .text()
            .contains("qemu-acme.scope")
    );
}

/// A limited number of cgroups is looked at, and that is said.
#[test]
fn endless_cgroups_do_not_stall_anything() {
    let machine = MachineTree::of("two-node");
    for number in 0..10_000 {
        std::fs::create_dir_all(machine.path(&format!("{CGROUPS}/{number}"))).unwrap();
    }
    make(machine.dir(), &[("zz", "root", "1", None)]);
    let plan = document(&machine, &["plan", "--avoid-exclusive"]);
    assert_line(
        text(note(&plan, "cgroups-left-out"), "text"),
        str![[r"
more than 8192 cgroups: some were not checked, so CPUs of an exclusive cpuset partition may receive interrupts

"]],
    );
    let plan = document(&machine, &["plan"]);
    assert!(!run::codes(&plan).contains(&"cgroups-left-out"), "{plan}");
    // One below the other.
    let deep = MachineTree::of("two-node");
    let path = vec!["a"; 40].join("/");
    for depth in 1..=40 {
        deep.put(
            &format!("{CGROUPS}/{}/cpuset.cpus.partition", &path[..depth * 2 - 1]),
            "root",
        );
    }
    let root = Root::open(deep.dir()).unwrap();
    assert!(partitions(&root).unwrap().cut);
}

#[test]
fn text_that_no_kernel_writes() {
    let copy = MachineTree::of("two-node");
    let said = [
        ("cpuset.cpus.effective", "x"),
        ("cpuset.cpus.exclusive.effective", "3-1"),
    ]
    .map(|(file, text)| {
        make(copy.dir(), &[("a", "root", "1", Some("1"))]);
        copy.put(&format!("{CGROUPS}/a/{file}"), text);
        assert_eq!(copy.nicpin(&["plan"]).code, 0);
        copy.fails(&["plan", "--avoid-exclusive"], 1)
    });
    assert_data_eq!(
        said.concat(),
        str![[r"
nicpin: ROOT/sys/fs/cgroup/a/cpuset.cpus.effective: `x` is not a CPU list such as 0-3,8: `x` is not a CPU number
nicpin: ROOT/sys/fs/cgroup/a/cpuset.cpus.exclusive.effective: `3-1` is not a CPU list such as 0-3,8: 3-1 runs downwards

"]]
    );
}
