//! Binds the calling thread, and what it starts afterwards, to CPUs and memory.

use std::io;

use crate::cpuset::{CpuSet, NodeSet};
use crate::plan::binding::{Binding, MemoryBinding};
use crate::root::errno_words;
use crate::root::sys::{self, MemoryPolicy};

/// The kernel refused a binding.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The kernel refused to bind the CPUs.
    #[error(
        "cannot run on CPUs {cpus}: {}",
        refusal(answer, "this process's cpuset holds none of them")
    )]
    Cpus {
        /// The CPUs.
        cpus: CpuSet,
        /// The kernel's answer.
        answer: io::Error,
    },
    /// The cpuset does not contain all requested CPUs.
    #[error("this process's cpuset contains only CPUs {left} of {cpus}")]
    Narrowed {
        /// The requested CPUs.
        cpus: CpuSet,
        /// Those of them in the cpuset.
        left: CpuSet,
    },
    /// The kernel refused to bind the memory.
    #[error(
        "cannot bind memory to node {nodes}: {}; fix: use `--memory local` to leave memory unbound",
        refusal(
            answer,
            "the node has no memory, or this process's cpuset does not contain it"
        )
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
        io::ErrorKind::PermissionDenied => {
            ": a container's seccomp profile may forbid it".to_owned()
        }
        _ => String::new(),
    };
    format!("{}{meaning}", errno_words(answer))
}

/// Binds the calling thread and what it starts afterwards, not other existing threads. Returns the chosen CPUs that
/// are in the cpuset.
pub fn bind(binding: &Binding) -> Result<CpuSet, BindError> {
    let refused = |answer| BindError::Cpus {
        cpus: binding.cpus.clone(),
        answer,
    };
    sys::set_affinity(&binding.cpus).map_err(refused)?;
    let left = sys::affinity().map_err(refused)?;
    if binding.requested && left != binding.cpus {
        return Err(BindError::Narrowed {
            cpus: binding.cpus.clone(),
            left,
        });
    }
    match sys::set_memory_policy(&memory_policy(binding)) {
        Ok(()) => Ok(left),
        // A kernel without NUMA has one node with all memory.
        Err(answer) if answer.kind() == io::ErrorKind::Unsupported => Ok(left),
        // Local is the default policy of a thread.
        Err(_) if binding.memory == MemoryBinding::Local => Ok(left),
        Err(answer) => Err(BindError::Memory {
            nodes: binding.memory_nodes.clone(),
            answer,
        }),
    }
}

/// The memory policy for `set_mempolicy(2)`.
pub fn memory_policy(binding: &Binding) -> MemoryPolicy {
    match binding.memory {
        MemoryBinding::Bind => MemoryPolicy::Bind(binding.memory_nodes.clone()),
        MemoryBinding::Preferred => MemoryPolicy::Preferred(binding.memory_nodes.clone()),
        MemoryBinding::Local => MemoryPolicy::Local,
    }
}
