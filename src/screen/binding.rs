//! The CPUs and memory of a binding as text.

use crate::screen::page::Page;
use nicpin::cpuset::CpuSet;
use nicpin::plan::binding::{Binding, MemoryBinding};

/// The node, CPUs, memory and notes, a line each. `left`: the CPUs that remain after the cpuset, if known.
pub fn binding(name: &str, binding: &Binding, left: Option<&CpuSet>) -> Page {
    let mut page = Page::default();
    let mut line = |what: &str, text: &str| page.item(format!("{what:<8}"), text);
    line("node", &format!("{}, for {name}", binding.nodes));
    line(
        "CPUs",
        &format!("{} ({})", binding.cpus.short(), binding.why),
    );
    let nodes = &binding.memory_nodes;
    line(
        "memory",
        &match binding.memory {
            MemoryBinding::Bind => format!("node {nodes} only"),
            MemoryBinding::Preferred => format!("node {nodes} preferred"),
            MemoryBinding::Local => "the node of the CPU that it runs on".to_owned(),
        },
    );
    for note in notes(binding, left) {
        line("note", &note);
    }
    page
}

/// The notes of a binding, and a note when the cpuset leaves fewer CPUs.
pub fn notes(binding: &Binding, left: Option<&CpuSet>) -> Vec<String> {
    let narrowed = left.filter(|&left| *left != binding.cpus).map(|left| {
        format!(
            "this process's cpuset contains only CPUs {} of {}",
            left.short(),
            binding.cpus.short()
        )
    });
    binding.notes.iter().cloned().chain(narrowed).collect()
}
