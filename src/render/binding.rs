//! Where a program would run, for people.

use crate::cpuset::CpuSet;
use crate::plan::binding::{Binding, MemoryBinding};
use crate::render::text::wrap;

/// A line each for CPUs, memory and what else to know; `left` are the CPUs that a cpuset leaves, where that is known.
pub fn binding(name: &str, binding: &Binding, left: Option<&CpuSet>) -> String {
    let mut out = String::new();
    let mut line = |what: &str, text: &str| out.push_str(&wrap(&format!("{what:<8}"), text));
    line("node", &format!("{}, for {name}", binding.nodes));
    line("CPUs", &format!("{} ({})", binding.cpus, binding.why));
    let nodes = &binding.memory_nodes;
    line(
        "memory",
        &match binding.memory {
            MemoryBinding::Bind => format!("of node {nodes} and no other"),
            MemoryBinding::Preferred => format!("of node {nodes} while it has some"),
            MemoryBinding::Local => "of the node that it runs on at the time".to_owned(),
        },
    );
    for note in notes(binding, left) {
        line("note", &note);
    }
    out
}

/// What somebody should know before a program runs there.
pub fn notes(binding: &Binding, left: Option<&CpuSet>) -> Vec<String> {
    let narrowed = left
        .filter(|&left| *left != binding.cpus)
        .map(|left| format!("this process's cpuset leaves CPUs {left} of {}", binding.cpus));
    binding.notes.iter().cloned().chain(narrowed).collect()
}
