//! A plan as a shell script: the writes of `apply`, with their reasons.

use std::fmt::Write as _;

use crate::machine::shell::word;
use crate::plan::Plan;
use crate::render::text::count;

/// One line `echo VALUE > PATH` for each write; not for a plan that changes channels.
pub fn plan(plan: &Plan) -> String {
    let mut out = format!(
        "#!/bin/sh\n# nicpin plan {}: {}, {} already as planned\n",
        plan.hash,
        count(plan.writes.len(), "write"),
        plan.unchanged
    );
    for write in &plan.writes {
        let on = if write.interface.is_empty() { "machine" } else { &write.interface };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "echo {} > {}  # {on}: {} (now {})",
            write.value,
            word(&write.path),
            write.why.replace(char::is_control, " "),
            write.current
        );
    }
    out
}
