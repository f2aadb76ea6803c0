//! The affinity of threads that poll queues (`sched_setaffinity(2)`).

use nix::errno::Errno::{EACCES, EINVAL, EPERM, ESRCH};

use super::kind::Meaning::{Refused, Vanished};
use super::kind::{Access, Kind, Names, Removed};
use super::value::ValueForm;
use crate::machine::wording::count;
use crate::machine::{Interface, NapiThread};

pub(super) const THREAD: Kind = Kind {
    names: Names::Each {
        recorded: "napi-thread",
        key,
        path: |pid| format!("/proc/{pid}"),
    },
    hashed: "thread",
    form: ValueForm::Cpus,
    of: |interface| {
        let threads = interface.threads.iter();
        threads
            .map(|thread| (thread.pid, (&thread.affinity).into()))
            .collect()
    },
    counted: |many| count(many, "thread"),
    access: Access::Thread,
    is_of_flows: false,
    meaning: |answer| match answer.errno {
        ESRCH => Some(Vanished(": the thread has ended; fix: run again")),
        EACCES | EPERM => Some(Refused(
            ": CAP_SYS_NICE is needed; fix: run as root, outside any container",
        )),
        EINVAL => Some(Refused(
            ": none of the CPUs is online now, or this thread cannot be moved",
        )),
        _ => None,
    },
    // Before Linux 6.3 (`cpuset_cpus_allowed`).
    removed: Removed::Offline,
};

/// Role and queue of the vector that wakes the thread. Several that one vector wakes (to receive and to transmit),
/// and those of unknown queues, are numbered.
fn key(interface: &Interface, pid: u32) -> String {
    let woken_by = |thread: &NapiThread| thread.woken_by.map(|(irq, _)| irq);
    let is_own = |thread: &&NapiThread| thread.pid == pid;
    let irq = interface.threads.iter().find(is_own).and_then(woken_by);
    let alike = interface.threads.iter();
    let alike = alike.filter(|thread| woken_by(thread) == irq);
    let is_only = alike.clone().count() == 1;
    let position = alike.clone().take_while(|thread| !is_own(thread)).count();
    let vector = irq.and_then(|irq| interface.vector(irq));
    match vector.map(|vector| vector.role.with_queue(vector.queue)) {
        Some(queue) if is_only => queue,
        Some(queue) => format!("{queue} #{position}"),
        None => format!("#{position}"),
    }
}
