//! `--gain`, and `only-gain` of the policy: settings that are as good as planned stay, and plans say which moves gain
//! nothing.

use snapbox::{assert_data_eq, str};

use crate::support::run::{MachineTree, assert_line};
use nicpin::plan::Measure;
use nicpin::report::difference::MeasureChange;

/// two-node as applied, with the IRQs of nic0's queues dealt to its CPUs in another order.
fn in_another_order() -> MachineTree {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let masks = ["1", "2", "4", "8"];
    for (queue, mask) in masks.iter().enumerate() {
        for irq in [36 + 2 * queue, 37 + 2 * queue] {
            on(&machine, irq, queue, mask);
        }
    }
    for (queue, mask) in ["10", "20", "40", "80"].iter().enumerate() {
        for irq in [27 + 2 * queue, 28 + 2 * queue] {
            on(&machine, irq, 4 + queue, mask);
        }
    }
    machine
}

fn on(machine: &MachineTree, irq: usize, cpu: usize, mask: &str) {
    machine.write(
        &format!("/proc/irq/{irq}/smp_affinity"),
        &format!("{mask}\n"),
    );
    machine.write(
        &format!("/proc/irq/{irq}/effective_affinity_list"),
        &format!("{cpu}\n"),
    );
}

fn first_line(machine: &MachineTree, args: &[&str]) -> String {
    let run = machine.nicpin(args);
    run.stdout.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn moves_that_gain_nothing_are_said_to_be_needless() {
    let machine = in_another_order();
    assert_line(
        first_line(&machine, &["plan"]),
        str![[r#"
8 of 32 settings would change; moving 8 IRQs gains nothing (see --gain). Apply: nicpin apply

"#]],
    );
    // Only steering gains something.
    for queue in 0..4 {
        machine.write(
            &format!("/sys/class/net/nic1/queues/tx-{queue}/xps_cpus"),
            "00\n",
        );
    }
    assert_line(
        first_line(&machine, &["plan"]),
        str![[r#"
12 of 32 settings would change; moving 8 IRQs gains nothing (see --gain). Apply: nicpin apply

"#]],
    );
    let status = machine.nicpin(&["status"]).stdout;
    let (summary, _) = status.split_once("\n\n").unwrap();
    assert_data_eq!(
        format!("{summary}\n"),
        str![[r#"
1 of 2 interfaces has changed since the last apply. Fix: nicpin apply (12 writes; moving 8 IRQs
gains nothing (see --gain))

"#]]
    );
    assert_line(
        first_line(&machine, &["plan", "--gain"]),
        str![[r#"
4 of 28 settings would change. Apply: nicpin apply --gain

"#]],
    );
}

#[test]
fn what_is_as_good_stays_and_check_is_content_with_both() {
    let machine = in_another_order();
    // One IRQ is on the wrong node: the free CPU is for it, the others stay.
    on(&machine, 27, 0, "1");
    on(&machine, 28, 0, "1");
    let code = |args: &[&str]| machine.nicpin(args).code;
    assert_eq!((code(&["check"]), code(&["check", "--gain"])), (2, 2));
    let applied = machine.nicpin(&["apply", "--gain"]);
    assert_eq!(applied.code, 0);
    assert!(
        applied.stdout.starts_with("2 settings written"),
        "{}",
        applied.stdout
    );
    assert_eq!(machine.read("/proc/irq/27/smp_affinity"), "10");
    assert_eq!(machine.read("/proc/irq/28/smp_affinity"), "10");
    on(&machine, 27, 4, "10");
    on(&machine, 28, 4, "10");
    assert_eq!((code(&["check"]), code(&["check", "--gain"])), (0, 0));
    // The exact plan differs, but not with `--gain`.
    let exact = ["check", "--exact"];
    assert_eq!(
        (code(&exact), code(&[exact[0], exact[1], "--gain"])),
        (2, 0)
    );
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    machine.write("/etc/nicpin.toml", "only-gain = true\n");
    assert_eq!(code(&exact), 0);
    let explained = machine.nicpin(&["plan", "--explain"]).stdout;
    assert!(
        explained.contains("a change would gain nothing"),
        "{explained}"
    );
}

/// The administrator allows IRQs on node 0 alone.
#[test]
fn a_plan_that_costs_locality_says_what_for() {
    let machine = in_another_order();
    machine.write("/proc/irq/default_smp_affinity", "0f\n");
    let plan = machine.plan(&[]);
    let all = MeasureChange::of_machine(&plan.score_now, &plan.score, &[]);
    let told = MeasureChange::most_telling(&all).into_iter();
    let told: Vec<_> = told
        .map(|change| (change.measure, change.is_better()))
        .collect();
    for expected in [(Measure::Remote, false), (Measure::Outside, true)] {
        assert!(told.contains(&expected), "{told:?}");
    }
}
