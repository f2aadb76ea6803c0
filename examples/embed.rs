//! Plans and checks a machine, or a copy of one: `cargo run --example embed -- fixtures/two-socket-mlx4`.
#![allow(clippy::print_stdout)]

use std::error::Error;

use nicpin::{Policy, ReadOptions, Root, Selection};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).unwrap_or_else(|| "/".into());
    let root = Root::open(path.as_ref())?;
    let machine = nicpin::machine(&root, ReadOptions::default())?;
    let selection = Selection::new(&machine, &[], false)?;
    let plan = nicpin::plan(&machine, &Policy::default(), &selection);
    for interface in &plan.interfaces {
        println!(
            "{}: {} vectors, CPUs {}",
            interface.name,
            interface.vectors.len(),
            interface.irq_cpus
        );
    }
    let check = nicpin::check(&root, &machine, &plan);
    for difference in &check.differs {
        let write = &difference.write;
        println!(
            "{} is {}, planned {}: {}",
            write.path, write.current, write.value, write.why
        );
    }
    println!(
        "{} as planned, {} not: exit code {}",
        check.same,
        check.differs.len(),
        check.exit() as u8
    );
    Ok(())
}
