//! `nicpin compare`: figures of several runs, and what cannot be compared. `tests/netns` and `tests/vm` compare real
//! commands.

use snapbox::{assert_data_eq, str};

use crate::support::host::set;
use crate::support::run::{MachineTree, fixture, nicpin};
use crate::support::schema::meets;
use nicpin::cpuset::NodeSet;
use nicpin::report::compare::{ComparedRun, Comparison, Side, Stats, outliers};

#[test]
fn median_mean_and_deviation() {
    let spread = |values: &[f64]| {
        Stats::of(values.iter().copied()).map(|s| ((s.median, s.min, s.max), (s.mean, s.stddev)))
    };
    assert_eq!(spread(&[]), None);
    assert_eq!(spread(&[3.0]), Some(((3.0, 3.0, 3.0), (3.0, None))));
    assert_eq!(
        spread(&[9.0, 1.0, 2.0]),
        Some(((2.0, 1.0, 9.0), (4.0, Some(19_f64.sqrt()))))
    );
    assert_eq!(
        spread(&[5.0, 1.0, 2.0, 4.0]),
        Some(((3.0, 1.0, 5.0), (3.0, Some((10.0 / 3.0_f64).sqrt()))))
    );
}

#[test]
fn what_is_far_from_the_others_is_an_outlier() {
    for (values, far) in [
        (&[][..], &[][..]),
        (&[1.0, 50.0], &[]),
        (&[10.0, 10.1, 9.9, 10.05, 60.0], &[5]),
        (&[60.0, 10.1, 9.9, 10.05, 10.0], &[1]),
        // Far by their own measure, but by less than a twentieth.
        (&[10.0, 10.0, 10.0, 10.0, 10.2], &[]),
        (&[10.0, 12.0, 8.0, 11.0, 14.0], &[]),
        (&[0.0, 0.0, 0.0, 0.0, 1.0], &[5]),
    ] {
        assert_eq!(outliers(values), far, "{values:?}");
    }
    let near = side(1, "6-11", &[9.0, 1.0, 1.0, 1.1].map(|wall| (wall, 0, 0)));
    let far = side(0, "0-5", &[2.0, 2.0, 2.1, 2.2].map(|wall| (wall, 0, 0)));
    let compared = Comparison::new("eth2", vec!["true".into()], near, far, Vec::new());
    let text = crate::screen::measure::compare(&compared)
        .show(crate::screen::page::Screen::default())
        .replace("\n        ", " ");
    let note = text.lines().find(|line| line.contains("near: run 1"));
    assert_data_eq!(
        note.unwrap(),
        str!["Note: near: run 1 is an outlier in time; use --warmup to leave out first runs"]
    );
}

fn side(node: u32, cpus: &str, runs: &[(f64, u64, u64)]) -> Side {
    let run = |&(wall, local, remote): &(f64, u64, u64)| ComparedRun {
        wall_seconds: wall,
        cpu_seconds: wall / 2.0,
        busy_cpu_seconds: wall * 2.0,
        gbit_per_second: 40.0 / wall,
        gbit_per_busy_cpu_second: (wall > 1.5).then_some(10.0),
        local_interrupts: local,
        remote_interrupts: remote,
        ..ComparedRun::default()
    };
    Side {
        nodes: NodeSet::single(node),
        cpus: set(cpus),
        runs: runs.iter().map(run).collect(),
    }
}

fn comparison() -> Comparison {
    let near = side(
        1,
        "6-11",
        &[(1.25, 1000, 0), (1.0, 1100, 0), (2.0, 1050, 0)],
    );
    let far = side(
        0,
        "0-5",
        &[(2.5, 10, 2000), (3.0, 20, 2000), (2.25, 15, 2000)],
    );
    Comparison::new(
        "eth2",
        vec!["iperf3".into(), "-c".into(), "server".into()],
        near,
        far,
        Vec::new(),
    )
}

#[test]
fn near_and_far_side_by_side() {
    let table = crate::screen::measure::compare(&comparison());
    assert_data_eq!(
        table.show(crate::screen::page::Screen::default()),
        str![[r#"
Far from eth2: 0.51 times the Gbit/s, 1.82 times the CPU time of the machine. Ran iperf3 -c server
near and far, 3 runs each, in alternating order.
  near  node 1  CPUs 6-11
  far   node 0  CPUs 0-5

FIGURE                SIDE  MEDIAN  MEAN ± DEVIATION  MIN     MAX     FAR/NEAR
wall s                near  1.25    1.42 ± 0.52       1.00    2.00
                      far   2.50    2.58 ± 0.38       2.25    3.00    1.82 ± 0.72
CPU s of the command  near  0.62    0.71 ± 0.26       0.50    1.00
                      far   1.25    1.29 ± 0.19       1.12    1.50    1.82 ± 0.72
CPU s of the machine  near  2.50    2.83 ± 1.04       2.00    4.00
                      far   5.00    5.17 ± 0.76       4.50    6.00    1.82 ± 0.72
CPU s in softirqs     near  0.00    0.00 ± 0.00       0.00    0.00
                      far   0.00    0.00 ± 0.00       0.00    0.00    -
Gbit/s                near  32.000  30.667 ± 10.066   20.000  40.000
                      far   16.000  15.704 ± 2.237    13.333  17.778  0.51 ± 0.18
Gbit per CPU s        near  10.000  10.000            10.000  10.000
                      far   10.000  10.000 ± 0.000    10.000  10.000  1.00
interrupts local      near  1050    1050 ± 50         1000    1100
                      far   15      15 ± 5            10      20      0.01 ± 0.00
interrupts remote     near  0       0 ± 0             0       0
                      far   2000    2000 ± 0          2000    2000    -
dropped               near  0       0 ± 0             0       0
                      far   0       0 ± 0             0       0       -

"#]]
    );
}

#[test]
fn the_same_figures_in_markdown() {
    let mut compared = comparison();
    compared.warmup = 1;
    compared
        .notes
        .push(nicpin::plan::Note::CpusUnlike { near: 6, far: 5 });
    let text = crate::screen::measure::markdown(&compared);
    assert_data_eq!(
        text,
        str![[r#"
Far from eth2: 0.51 times the Gbit/s, 1.82 times the CPU time of the machine. Ran iperf3 -c server near and far, 3 runs each after 1 to warm up, in alternating order.

* near: node 1, CPUs 6-11
* far: node 0, CPUs 0-5

| FIGURE | SIDE | MEDIAN | MEAN ± DEVIATION | MIN | MAX | FAR/NEAR |
|:---|:---|---:|---:|---:|---:|---:|
| wall s | near | 1.25 | 1.42 ± 0.52 | 1.00 | 2.00 |  |
|  | far | 2.50 | 2.58 ± 0.38 | 2.25 | 3.00 | 1.82 ± 0.72 |
| CPU s of the command | near | 0.62 | 0.71 ± 0.26 | 0.50 | 1.00 |  |
|  | far | 1.25 | 1.29 ± 0.19 | 1.12 | 1.50 | 1.82 ± 0.72 |
| CPU s of the machine | near | 2.50 | 2.83 ± 1.04 | 2.00 | 4.00 |  |
|  | far | 5.00 | 5.17 ± 0.76 | 4.50 | 6.00 | 1.82 ± 0.72 |
| CPU s in softirqs | near | 0.00 | 0.00 ± 0.00 | 0.00 | 0.00 |  |
|  | far | 0.00 | 0.00 ± 0.00 | 0.00 | 0.00 | - |
| Gbit/s | near | 32.000 | 30.667 ± 10.066 | 20.000 | 40.000 |  |
|  | far | 16.000 | 15.704 ± 2.237 | 13.333 | 17.778 | 0.51 ± 0.18 |
| Gbit per CPU s | near | 10.000 | 10.000 | 10.000 | 10.000 |  |
|  | far | 10.000 | 10.000 ± 0.000 | 10.000 | 10.000 | 1.00 |
| interrupts local | near | 1050 | 1050 ± 50 | 1000 | 1100 |  |
|  | far | 15 | 15 ± 5 | 10 | 20 | 0.01 ± 0.00 |
| interrupts remote | near | 0 | 0 ± 0 | 0 | 0 |  |
|  | far | 2000 | 2000 ± 0 | 2000 | 2000 | - |
| dropped | near | 0 | 0 ± 0 | 0 | 0 |  |
|  | far | 0 | 0 ± 0 | 0 | 0 | - |

Note: unequal CPU counts: 6 on the near node, 5 on the far node

"#]]
    );
}

#[test]
fn the_json_has_every_run() {
    let json = crate::screen::json(&comparison()).unwrap();
    meets(&json);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], "nicpin.compare/1");
    assert_eq!(
        (&json["near"]["nodes"], &json["near"]["cpus"]),
        (&"1".into(), &"6-11".into())
    );
    assert_eq!(json["far"]["runs"][1]["wall_seconds"], 3.0);
    // Absent in two of the runs.
    assert_eq!(
        json["near"]["runs"][0]["gbit_per_busy_cpu_second"],
        serde_json::Value::Null
    );
    let wall = json["figures"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["name"] == "wall_seconds")
        .unwrap();
    assert_eq!(
        (&wall["near"]["median"], &wall["far"]["median"]),
        (&1.25.into(), &2.5.into())
    );
    let number = |value: &serde_json::Value| (value.as_f64().unwrap() * 1000.0).round();
    assert_eq!(
        (
            number(&wall["near"]["mean"]),
            number(&wall["near"]["stddev"])
        ),
        (1417.0, 520.0)
    );
    assert_eq!(
        (
            number(&wall["far_to_near"]),
            number(&wall["far_to_near_stddev"])
        ),
        (1824.0, 722.0)
    );
    assert_eq!(json["warmup"], 0);
}

#[test]
fn without_a_far_node_nothing_runs() {
    let one_node = fixture("tg3-and-ixgbe");
    let run = |root: &std::path::Path, args: &[&str]| {
        let run = nicpin(
            &[
                &["--root", root.to_str().unwrap(), "compare"],
                args,
                &["--", "echo", "ran"],
            ]
            .concat(),
        );
        assert_eq!(
            (run.stdout.as_str(), run.stderr.lines().count()),
            ("", 1),
            "{args:?}: {}",
            run.stderr
        );
        (run.code, run.stderr)
    };
    let four_nodes = fixture("four-node");
    let ended = [
        run(&one_node, &["em1"]),
        run(&four_nodes, &["nic5"]),
        run(&four_nodes, &["--far", "9", "nic0"]),
        run(&four_nodes, &["eth7"]),
        // A command runs on this machine only.
        run(&four_nodes, &["nic0"]),
    ];
    assert_eq!(ended.each_ref().map(|(code, _)| *code), [1, 1, 64, 1, 64]);
    assert_data_eq!(
        ended.map(|(_, said)| said).concat(),
        str![[r"
nicpin: no node with CPUs is remote from em1: node 0 is near
nicpin: nic5: its node is unknown (numa_node is -1 or missing); fix: choose one with --node N
nicpin: node 9 does not exist; nodes with CPUs: 0-3
nicpin: no interface matches `eth7`; nearest are nic7, nic0, nic1, nic2, nic3 (of 8)
nicpin: the command would run on this machine, not on the one that --root names

"]]
    );

    let machine = MachineTree::of("two-node");
    std::fs::create_dir_all(machine.path("/sys/class/net/veth0")).unwrap();
    for (file, text) in [("ifindex", "7\n"), ("iflink", "8\n")] {
        machine.write(&format!("/sys/class/net/veth0/{file}"), text);
    }
    for nodes in [&[][..], &["--near", "0"], &["--far", "0"]] {
        let (code, said) = run(machine.dir(), &[nodes, &["veth0"]].concat());
        assert_eq!(code, 1, "{said}");
        assert_data_eq!(
            said,
            str![[r"
nicpin: `veth0` is a veth or a tunnel and has no node; fix: name the nodes to compare with --near N --far N

"]]
        );
    }
    let (code, _) = run(machine.dir(), &["--near", "0", "--far", "1", "veth0"]);
    assert_eq!(code, 64, "now all is said but the machine");
}

#[test]
fn a_comparison_needs_a_command_and_runs() {
    let root = fixture("four-node");
    for args in [
        &["compare", "nic0"][..],
        &["compare", "--", "true"],
        &["compare", "-n", "0", "nic0", "--", "true"],
    ] {
        assert_eq!(
            nicpin(&[&["--root", root.to_str().unwrap()], args].concat()).code,
            64,
            "{args:?}"
        );
    }
}
