//! Tests that depend on the machine they run on: a user, a feature of the kernel, a program. A test is skipped if
//! something that it needs is missing, and the last line counts and names what is missing. With `CI=true` the test
//! fails if CI has what it needs.
#![allow(clippy::too_many_lines)] // tests are tables
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::print_stdout)] // tests, and what they print

#[path = "../it/support/mod.rs"]
mod support;

#[allow(dead_code)] // of which only the measurement is tested here
#[path = "../../src/commands/bandwidth.rs"]
mod bandwidth;

mod balancer;
mod full_run_directory;
mod kernel;
mod programs;
mod run;
mod users;

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::process::{Command, ExitCode};
use std::sync::Mutex;

use kernel::ask_netdev;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use support::kernel::let_write;
use support::run::is_root;

use nicpin::root::sys;

/// Name, requirements and function.
type Test = (&'static str, &'static [Need], fn());

const TESTS: &[Test] = &[
    (
        "a_connection_is_listed_with_its_interface_and_node",
        &[Need::SockDiag, Need::Loopback],
        kernel::a_connection_is_listed_with_its_interface_and_node,
    ),
    (
        "an_interface_that_is_not_there_has_no_queues",
        &[Need::Netdev],
        kernel::no_queues_without_an_interface,
    ),
    (
        "pages_are_of_the_node",
        &[Need::MemoryPolicy],
        kernel::pages_are_of_the_node,
    ),
    (
        "a_threads_memory_is_bound_and_says_so",
        &[Need::MemoryPolicy],
        kernel::a_threads_memory_is_bound,
    ),
    (
        "a_rate_is_measured",
        &[Need::MemoryPolicy],
        kernel::a_rate_is_measured,
    ),
    (
        "what_a_bound_thread_starts_is_bound",
        &[Need::MemoryPolicy],
        run::what_a_bound_thread_starts_is_bound,
    ),
    (
        "the_command_is_bound_and_its_end_is_its_own",
        &[Need::MemoryPolicy, Need::Interface],
        run::a_command_is_bound,
    ),
    (
        "a_capture_plans_as_this_machine",
        &[Need::Interface],
        programs::a_capture_plans_as_this_machine,
    ),
    (
        "a_policy_of_another_user_or_group_is_not_applied",
        &[Need::Root],
        users::a_policy_of_another_user,
    ),
    (
        "a_file_that_an_acl_lets_another_user_write_is_not_trusted",
        &[Need::Acl],
        users::an_acl_of_another_user,
    ),
    (
        "only_those_who_may_write_the_record_can_apply_and_all_can_plan",
        &[Need::Root],
        users::only_root_applies,
    ),
    (
        "hidden_processes_fail_no_command",
        &[Need::Root],
        users::hidden_processes_fail_no_command,
    ),
    ("irqbalance_is_asked", &[Need::Root], balancer::is_asked),
    (
        "irqbalance_costs_at_most_five_seconds",
        &[Need::Root],
        balancer::costs_at_most_five_seconds,
    ),
    (
        "impostors_of_irqbalance_are_not_asked",
        &[Need::Root],
        balancer::impostors_are_not_asked,
    ),
    (
        "a_capture_does_not_go_to_a_terminal",
        &[Need::Program("script")],
        programs::a_capture_and_a_terminal,
    ),
    (
        "a_running_machine_without_sysfs_is_not_planned",
        &[Need::MountNamespace],
        programs::a_machine_without_sysfs_is_not_planned,
    ),
    (
        "a_machine_whose_interrupts_are_masked_has_a_status",
        &[Need::MountNamespace, Need::Interface],
        programs::a_machine_whose_interrupts_are_masked_has_a_status,
    ),
    (
        "a_full_run_keeps_nothing_from_being_restored",
        &[Need::MountNamespace],
        full_run_directory::a_full_run_keeps_nothing_from_being_restored,
    ),
    (
        "pages_are_good_roff",
        &[Need::Program("mandoc")],
        programs::pages_are_good_roff,
    ),
    (
        "bash_completes",
        &[Need::Program("bash"), Need::Program("setsid")],
        || {
            programs::completes("bash", &["--norc", "--noprofile", "-i"], "PS1=");
        },
    ),
    (
        "zsh_completes",
        &[Need::Program("zsh"), Need::Program("setsid")],
        || {
            programs::completes(
                "zsh",
                &["-f", "-i"],
                "PS1=; autoload -U compinit; compinit -u -D; bindkey -e",
            );
        },
    ),
    (
        "fish_completes",
        &[Need::Program("fish"), Need::Program("setsid")],
        || {
            programs::completes("fish", &["--no-config", "-i"], "function fish_prompt; end");
        },
    ),
    (
        "output_to_a_device",
        &[Need::Root],
        programs::output_to_a_device,
    ),
    (
        "bash_reads_its_completions",
        &[Need::Program("bash")],
        || programs::completions_are_read_by("bash"),
    ),
    (
        "fish_reads_its_completions",
        &[Need::Program("fish")],
        || programs::completions_are_read_by("fish"),
    ),
    ("zsh_reads_its_completions", &[Need::Program("zsh")], || {
        programs::completions_are_read_by("zsh");
    }),
];

#[derive(Clone, Copy)]
enum Need {
    Root,
    /// POSIX ACLs in the directory for temporary files.
    Acl,
    /// `get_mempolicy(2)`, which kernels without NUMA and some containers do not have.
    MemoryPolicy,
    /// By unshare(1).
    MountNamespace,
    /// The generic netlink family `netdev`.
    Netdev,
    /// `sock_diag` about TCP.
    SockDiag,
    /// The loopback interface is up.
    Loopback,
    /// With a device.
    Interface,
    Program(&'static str),
}

impl Need {
    /// Returns what is missing on this machine; `None` if the requirement is met.
    fn unmet(self) -> Option<String> {
        match self {
            Self::Root => (!is_root()).then(|| "root".to_owned()),
            Self::Acl => {
                let file = tempfile::NamedTempFile::new().unwrap();
                let_write(file.path(), 0)
                    .err()
                    .map(|error| format!("POSIX ACLs ({error})"))
            }
            Self::MemoryPolicy => sys::allowed_nodes()
                .err()
                .map(|error| format!("memory policy (get_mempolicy: {error})")),
            Self::MountNamespace => {
                let made = Command::new("unshare").args(["-rm", "true"]).output();
                (!made.is_ok_and(|made| made.status.success()))
                    .then(|| "a mount namespace".to_owned())
            }
            Self::Loopback => {
                let connected =
                    UdpSocket::bind("127.0.0.1:0").and_then(|s| s.connect("127.0.0.1:9"));
                connected
                    .is_err()
                    .then(|| "the loopback interface up".to_owned())
            }
            Self::Netdev => ask_netdev(1)
                .err()
                .map(|error| format!("netlink family netdev ({error})")),
            Self::SockDiag => kernel::connected()
                .is_none()
                .then(|| "sock_diag about TCP".to_owned()),
            Self::Interface => run::interface()
                .is_none()
                .then(|| "an interface with a device behind it".to_owned()),
            Self::Program(name) => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                let here = std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
                (!here).then(|| format!("{name}(1)"))
            }
        }
    }

    /// Whether each machine that runs `.ci/run` meets the requirement.
    fn is_in_ci(self) -> bool {
        match self {
            Self::Root | Self::MemoryPolicy => true,
            // Queues and NAPI instances since 6.8.
            Self::Netdev => release() >= Some((6, 8)),
            Self::Interface
            | Self::Acl
            | Self::MountNamespace
            | Self::SockDiag
            | Self::Loopback => false,
            Self::Program(name) => {
                ["bash", "fish", "mandoc", "script", "setsid", "zsh"].contains(&name)
            }
        }
    }
}

fn release() -> Option<(u32, u32)> {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = text
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

static MISSED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn trial(&(name, needs, test): &Test) -> Trial {
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    Trial::ignorable_test(name, move || {
        let unmet = needs.iter().find_map(|need| Some((need, need.unmet()?)));
        let Some((need, missing)) = unmet else {
            test();
            return Ok(Completion::Completed);
        };
        if in_ci && need.is_in_ci() {
            return Err(Failed::from(format!(
                "not run, for want of what CI has: {missing}"
            )));
        }
        MISSED.lock().unwrap().insert(missing.clone());
        Ok(Completion::ignored_with(format!("needs {missing}")))
    })
}

fn main() -> ExitCode {
    if balancer::is_wanted() {
        return ExitCode::SUCCESS;
    }
    let conclusion = libtest_mimic::run(&Arguments::from_args(), TESTS.iter().map(trial).collect());
    let missed: Vec<String> = MISSED.lock().unwrap().iter().cloned().collect();
    if !missed.is_empty() {
        let all = conclusion.num_passed + conclusion.num_failed + conclusion.num_ignored;
        println!(
            "skipped {} of {all}, which need: {}\n",
            conclusion.num_ignored,
            missed.join(", ")
        );
    }
    conclusion.exit_code()
}
