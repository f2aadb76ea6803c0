//! Binding the calling thread to CPUs and memory, and so whatever it starts from then on.

use std::io;

use crate::cpuset::{CpuSet, NodeSet};
use crate::plan::binding::{Binding, MemoryBinding};
use crate::root::errno_words;
use crate::sys::{self, MemoryPolicy};

/// The kernel refused a binding.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// It does not let the thread run there.
    #[error("cannot run on CPUs {cpus}: {}", refusal(answer, "this process's cpuset holds none of them"))]
    Cpus {
        /// The CPUs.
        cpus: CpuSet,
        /// The kernel's answer.
        answer: io::Error,
    },
    /// A cpuset leaves only some of the CPUs that were named.
    #[error("this process's cpuset leaves only CPUs {left} of {cpus}")]
    Narrowed {
        /// The CPUs that were asked for.
        cpus: CpuSet,
        /// Those of them that are allowed.
        left: CpuSet,
    },
    /// It does not give memory from there.
    #[error(
        "cannot have memory of node {nodes}: {}; `--memory local` does without",
        refusal(answer, "this process's cpuset, or the node, has none")
    )]
    Memory {
        /// The nodes.
        nodes: NodeSet,
        /// The kernel's answer.
        answer: io::Error,
    },
}

/// The kernel's answer, with what EINVAL and EPERM mean here.
fn refusal(answer: &io::Error, invalid: &str) -> String {
    let meaning = match answer.kind() {
        io::ErrorKind::InvalidInput => format!(": {invalid}"),
        io::ErrorKind::PermissionDenied => ": a container's seccomp profile may forbid it".to_owned(),
        _ => String::new(),
    };
    format!("{}{meaning}", errno_words(answer))
}

/// Binds the calling thread; threads that are there already are not bound. Gives the CPUs that a cpuset has left of
/// those that were chosen.
pub fn bind(binding: &Binding) -> Result<CpuSet, BindError> {
    let refused = |answer| BindError::Cpus { cpus: binding.cpus.clone(), answer };
    sys::set_affinity(&binding.cpus).map_err(refused)?;
    let left = sys::affinity().map_err(refused)?;
    if binding.asked && left != binding.cpus {
        return Err(BindError::Narrowed { cpus: binding.cpus.clone(), left });
    }
    match sys::set_memory_policy(&memory_policy(binding)) {
        Ok(()) => Ok(left),
        // A kernel without NUMA has one node, and all memory is of it.
        Err(answer) if answer.kind() == io::ErrorKind::Unsupported => Ok(left),
        // What a thread does that nobody told otherwise.
        Err(_) if binding.memory == MemoryBinding::Local => Ok(left),
        Err(answer) => Err(BindError::Memory { nodes: binding.memory_nodes.clone(), answer }),
    }
}

/// The memory policy as the kernel knows it.
pub fn memory_policy(binding: &Binding) -> MemoryPolicy {
    match binding.memory {
        MemoryBinding::Bind => MemoryPolicy::Bind(binding.memory_nodes.clone()),
        MemoryBinding::Preferred => MemoryPolicy::Preferred(binding.memory_nodes.clone()),
        MemoryBinding::Local => MemoryPolicy::Local,
    }
}
