//! Binds the calling thread, and what it starts afterwards, to CPUs and memory.

use std::io;

use crate::cpuset::{CpuSet, NodeSet};
use crate::plan::binding::{Binding, BindingError, MemoryBinding};
use crate::root::errno_words;
use crate::root::sys::{self, MPOL_BIND, MPOL_LOCAL, MPOL_PREFERRED, MPOL_PREFERRED_MANY};

fn refusal(answer: &io::Error, invalid: &str) -> String {
    let words = errno_words(answer);
    match answer.kind() {
        io::ErrorKind::InvalidInput => words + ": " + invalid,
        io::ErrorKind::PermissionDenied => words + ": a container's seccomp profile may forbid it",
        _ => words,
    }
}

/// Returns the chosen CPUs in the cpuset; an error if it lacks requested ones.
pub fn bind(binding: &Binding) -> Result<CpuSet, BindingError> {
    let cpus = &binding.cpus;
    let refused = |answer| {
        let why = refusal(&answer, "this process's cpuset holds none of them");
        BindingError(format!("cannot run on CPUs {cpus}: {why}"))
    };
    sys::set_affinity(0, cpus).map_err(refused)?;
    let left = sys::affinity().map_err(refused)?;
    if binding.requested && left != *cpus {
        let why = format!("this process's cpuset contains only CPUs {left} of {cpus}");
        return Err(BindingError(why));
    }
    let (none, nodes) = (NodeSet::new(), &binding.memory_nodes);
    let (mode, given) = match binding.memory {
        MemoryBinding::Bind => (MPOL_BIND, nodes),
        // The policy for several nodes is new in Linux 5.15.
        MemoryBinding::Preferred if nodes.len() == 1 => (MPOL_PREFERRED, nodes),
        MemoryBinding::Preferred => (MPOL_PREFERRED_MANY, nodes),
        MemoryBinding::Local => (MPOL_LOCAL, &none),
    };
    match sys::set_memory_policy(mode, given) {
        // A kernel without NUMA has one node with all memory. Local is the default policy of a thread.
        Err(answer)
            if answer.kind() != io::ErrorKind::Unsupported
                && binding.memory != MemoryBinding::Local =>
        {
            let invalid = "the node has no memory, or this process's cpuset does not contain it";
            let why = refusal(&answer, invalid);
            Err(BindingError(format!(
                "cannot bind memory to node {nodes}: {why}; fix: use `--memory local` to leave memory unbound"
            )))
        }
        _ => Ok(left),
    }
}
