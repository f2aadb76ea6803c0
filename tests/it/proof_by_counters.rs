//! Where interrupts arrived after an apply, by the kernel's counters.

use std::process::{Command, Stdio};

use serde_json::Value;
use snapbox::{assert_data_eq, str};

use crate::screen::page::Screen;
use crate::support::host::read_and_plan;
use crate::support::run::{MachineTree, Run, assert_line, document, text};
use crate::support::schema::meets;
use nicpin::apply::{self, Options, Proof};
use nicpin::machine::Role;
use nicpin::report::applied::{Applied, Evidence, VectorProof};
use nicpin::root::Root;

/// An applied machine whose counters can be moved.
struct AppliedMachine {
    tree: MachineTree,
    root: Root,
    done: Applied,
}

impl AppliedMachine {
    fn new() -> Self {
        let tree = MachineTree::of("two-node");
        let root = Root::open(tree.dir()).unwrap();
        let planned = |root: &Root| read_and_plan(root, &[], &["nic0"]);
        let done = apply::apply(&root, Options::default(), planned).unwrap();
        assert!(!done.failed());
        Self { tree, root, done }
    }

    /// The IRQ of a receive queue, and the CPU that is planned for it.
    fn rx(&self, queue: u32) -> (u32, u32) {
        let vectors = &self.done.plan.interfaces[0].vectors;
        let is = |v: &&nicpin::plan::PlannedVector| {
            v.queue == Some(queue) && v.role == nicpin::machine::Role::Rx
        };
        let vector = vectors.iter().find(is).unwrap();
        (vector.irq, vector.cpus.as_ref().unwrap().first().unwrap())
    }

    /// Counts interrupts of an IRQ on a CPU.
    fn fire(&self, irq: u32, cpu: u32, times: u32) {
        let text = self.tree.read("/proc/interrupts");
        let label = format!("{irq}:");
        let row = |row: &str| {
            if !row.trim_start().starts_with(&label) {
                return format!("{row}\n");
            }
            let (label, rest) = row.split_once(':').unwrap();
            // The text after the counts stays.
            let (mut counts, mut tail) = (Vec::new(), rest);
            for _ in 0..8 {
                let (count, rest) = tail.trim_start().split_once(' ').unwrap();
                counts.push(count.parse::<u32>().unwrap());
                tail = rest;
            }
            counts[cpu as usize] = counts[cpu as usize].wrapping_add(times);
            let counts: Vec<String> = counts.iter().map(|count| format!("{count:>10}")).collect();
            format!("{label}: {} {tail}\n", counts.join(" "))
        };
        self.tree.write(
            "/proc/interrupts",
            &text.lines().map(row).collect::<String>(),
        );
    }

    fn proof(&self) -> Proof {
        Proof::begin(&self.root, &self.done).unwrap()
    }

    fn finish(&self, proof: Proof) -> Vec<VectorProof> {
        proof.finish(&self.root).unwrap()
    }
}

fn of(proof: &[VectorProof], irq: u32) -> &VectorProof {
    proof.iter().find(|vector| vector.irq == irq).unwrap()
}

/// `apply` on a screen.
fn with_proof(done: &Applied, proof: Vec<VectorProof>) -> Applied {
    Applied {
        proof: Some(proof),
        ..done.clone()
    }
}

fn applied(report: &Applied) -> String {
    crate::screen::applied::applied(report, false, &crate::screen::Given::default())
        .show(Screen::default())
}

#[test]
fn every_vector_is_proven_when_each_has_fired_where_it_should() {
    let machine = AppliedMachine::new();
    let mut proof = machine.proof();
    assert!(!proof.look(&machine.root).unwrap());
    for vector in machine.done.plan.interfaces[0]
        .vectors
        .iter()
        .filter(|vector| vector.queue.is_some())
    {
        machine.fire(
            vector.irq,
            vector.cpus.as_ref().unwrap().first().unwrap(),
            3,
        );
    }
    assert!(proof.look(&machine.root).unwrap());
    let proof = machine.finish(proof);
    assert_eq!(proof.len(), 8);
    assert!(
        proof
            .iter()
            .all(|v| v.verdict == Evidence::Proven && v.interrupts == 3 && v.others.is_empty())
    );
    let screen = applied(&with_proof(&machine.done, proof));
    assert_data_eq!(
        screen,
        str![[r"
12 settings written and read back. 6 IRQs move at the next interrupt.
  nic0  8 IRQs, 4 XPS
proven      nic0 rx 0-3, tx 0-3: interrupts arrived where planned
proof: proven=8 no-traffic=0 mismatch=0
Undo: nicpin restore
plan d5e06e3272f72570: changed=12 already=4 managed=0 refused=0 vanished=0 pending=6

"]]
    );
}

#[test]
fn a_vector_without_interrupts_proves_nothing_and_fails_nothing() {
    let machine = AppliedMachine::new();
    let mut proof = machine.proof();
    let (irq, cpu) = machine.rx(1);
    machine.fire(irq, cpu, 1);
    assert!(!proof.look(&machine.root).unwrap());
    let proof = machine.finish(proof);
    assert_eq!(of(&proof, machine.rx(2).0).verdict, Evidence::NoTraffic);
    let applied = with_proof(&machine.done, proof);
    assert!(!applied.failed());
    assert_data_eq!(
        self::applied(&applied),
        str![[r"
12 settings written and read back. 6 IRQs move at the next interrupt.
  nic0  8 IRQs, 4 XPS
proven      nic0 rx 1: interrupts arrived where planned
no traffic  nic0 rx 0,2-3, tx 0-3: no interrupts seen
proof: proven=1 no-traffic=7 mismatch=0
Undo: nicpin restore
plan d5e06e3272f72570: changed=12 already=4 managed=0 refused=0 vanished=0 pending=6

"]]
    );
    // A single queue of a device with combined ones.
    let mut one = applied.proof.unwrap_or_default();
    one.retain(|vector| vector.irq == machine.rx(2).0);
    one[0].role = Role::Combined;
    let screen = self::applied(&with_proof(&machine.done, one));
    assert_data_eq!(
        screen,
        str![[r"
12 settings written and read back. 6 IRQs move at the next interrupt.
  nic0  8 IRQs, 4 XPS
no traffic  nic0 queue 2: no interrupts seen
proof: proven=0 no-traffic=1 mismatch=0
Undo: nicpin restore
plan d5e06e3272f72570: changed=12 already=4 managed=0 refused=0 vanished=0 pending=6

"]]
    );
}

/// Without interrupt remapping the first interrupt still arrives on the old CPU, and moves the vector.
#[test]
fn the_interrupt_that_moves_a_vector_is_not_a_failure() {
    let machine = AppliedMachine::new();
    let (irq, cpu) = machine.rx(0);
    let effective = format!("/proc/irq/{irq}/effective_affinity_list");
    // In two samples or in one.
    for looks in [2, 1] {
        let mut proof = machine.proof();
        machine.fire(irq, cpu + 1, 1);
        if looks == 2 {
            proof.look(&machine.root).unwrap();
        }
        machine.fire(irq, cpu, 5);
        machine.tree.write(&effective, &format!("{cpu}\n"));
        proof.look(&machine.root).unwrap();
        let proof = machine.finish(proof);
        let vector = of(&proof, irq);
        assert_eq!((vector.verdict, vector.interrupts), (Evidence::Proven, 5));
        assert_eq!(vector.others.to_string(), (cpu + 1).to_string());
    }
}

#[test]
fn interrupts_that_arrive_elsewhere_are_a_failure() {
    let machine = AppliedMachine::new();
    let (irq, cpu) = machine.rx(0);
    let mut proof = machine.proof();
    machine.fire(irq, cpu, 5);
    proof.look(&machine.root).unwrap();
    // It was proven, and then it was moved.
    machine.fire(irq, 7, 5);
    proof.look(&machine.root).unwrap();
    let proof = machine.finish(proof);
    assert_eq!(of(&proof, irq).verdict, Evidence::Elsewhere);
    let applied = with_proof(&machine.done, proof);
    assert!(applied.failed());
    assert_data_eq!(
        self::applied(&applied),
        str![[r"
12 settings written and read back. 6 IRQs move at the next interrupt.
  nic0  8 IRQs, 4 XPS
no traffic  nic0 rx 1-3, tx 0-3: no interrupts seen
mismatch    nic0 IRQ 36: planned CPU 1, interrupts seen on CPU 7
proof: proven=0 no-traffic=7 mismatch=1
Undo: nicpin restore
plan d5e06e3272f72570: changed=12 already=4 managed=0 refused=0 vanished=0 pending=6

"]]
    );
}

#[test]
fn a_vector_that_is_moved_away_or_gone_is_a_failure() {
    let machine = AppliedMachine::new();
    let ((moved, cpu), (gone, _)) = (machine.rx(0), machine.rx(1));
    let mut proof = machine.proof();
    machine.fire(moved, cpu, 5);
    machine
        .tree
        .write(&format!("/proc/irq/{moved}/smp_affinity"), "80\n");
    machine.tree.remove(&format!("/proc/irq/{gone}"));
    proof.look(&machine.root).unwrap();
    let proof = machine.finish(proof);
    assert_eq!(of(&proof, moved).verdict, Evidence::MovedAway);
    assert_eq!(of(&proof, gone).verdict, Evidence::Gone);
    assert!(with_proof(&machine.done, proof).failed());
}

#[test]
fn counters_wrap_at_2_to_the_32() {
    let machine = AppliedMachine::new();
    let (irq, cpu) = machine.rx(0);
    machine.fire(irq, cpu, u32::MAX - 10);
    let mut proof = machine.proof();
    machine.fire(irq, cpu, 100);
    proof.look(&machine.root).unwrap();
    assert_eq!(of(&machine.finish(proof), irq).interrupts, 100);
}

/// As of an IRQ that is freed and requested again under the same name.
#[test]
fn a_counter_that_begins_anew_proves_nothing() {
    let machine = AppliedMachine::new();
    let (irq, cpu) = machine.rx(0);
    machine.fire(irq, cpu, 1000);
    let mut proof = machine.proof();
    machine.fire(irq, cpu, 1000_u32.wrapping_neg());
    proof.look(&machine.root).unwrap();
    let proof = machine.finish(proof);
    let vector = of(&proof, irq);
    assert_eq!(
        (vector.verdict, vector.interrupts),
        (Evidence::NoTraffic, 0)
    );
}

#[test]
fn the_command_waits_and_reports_what_it_saw() {
    let tree = MachineTree::of("two-node");
    let proof = document(&tree, &["apply", "--prove", "1"])["proof"].take();
    let proof = proof.as_array().unwrap();
    let mut verdicts = proof.iter().map(|vector| &vector["verdict"]);
    assert!(verdicts.all(|verdict| verdict == "no-traffic"), "{proof:?}");
    assert_eq!(proof.len(), 16);
    // Nothing is proven after --atomic restored the settings, nor without --prove.
    assert_eq!(document(&tree, &["apply"])["proof"], Value::Null);
    assert_eq!(tree.nicpin(&["apply", "--prove", "0"]).code, 64);
}

/// What was written is reported all the same.
#[test]
fn counters_that_cannot_be_read_are_reported_with_what_was_written() {
    for args in [&[][..], &["--json"]] {
        let machine = MachineTree::of("two-node");
        let mut command = Command::new(env!("CARGO_BIN_EXE_nicpin"));
        command.args(["apply", "--prove", "60", "--root"]);
        command.arg(machine.path("/")).args(args);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        // The machine was read before.
        while !machine.path("/run/nicpin/state.json").exists() {
            std::thread::yield_now();
        }
        machine.write("/proc/interrupts", "garbage\n");
        let run = Run::ended(child.unwrap().wait_with_output().unwrap());
        meets(&run.stdout);
        assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{}", run.stdout);
        if args.is_empty() {
            // Where the lines break depends on the machine's directory.
            assert_line(
                machine.rooted(&run.words()),
                str![[r"
24 settings written and read back. 12 IRQs move at the next interrupt. nic0 8 IRQs, 4 XPS nic1 8 IRQs, 4 XPS no proof ROOT/proc/interrupts: has no header line with CPUs; is /proc an incomplete copy? Undo: nicpin restore plan edaa12e59e881890: changed=24 already=8 managed=0 refused=0 vanished=0 pending=12

"]],
            );
        } else {
            let report = run.json();
            assert_eq!(report["changed"], 24);
            let error = machine.rooted(text(&report, "proof_error"));
            assert_line(
                error,
                str![[r"
ROOT/proc/interrupts: has no header line with CPUs; is /proc an incomplete copy?

"]],
            );
        }
    }
}
