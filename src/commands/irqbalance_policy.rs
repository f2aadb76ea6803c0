//! `nicpin irqbalance-policy`: answer irqbalance, which runs its policy script once for each IRQ, with the device's
//! path in /sys and the IRQ as arguments, and reads lines such as `ban=true`. Its service may run in a network
//! namespace without network devices: then the answer comes from the record of the last apply.

use anyhow::Result;
use clap::Args;

use crate::commands::args::{General, PolicyArgs, TargetArgs};
use crate::commands::inputs::{Purpose, read_and_plan, read_policy};
use nicpin::apply::irqbalance::IrqbalanceRecord;
use nicpin::machine::files::NET;
use nicpin::read::ReadOptions;
use nicpin::read::handlers::Handlers;
use nicpin::read::others::class;
use nicpin::report::exit::Exit;
use nicpin::root::Root;

#[derive(Args)]
pub struct IrqbalancePolicyArgs {
    /// Path of the device in /sys that has the IRQ
    #[arg(value_name = "DEVICE")]
    device: String,

    /// IRQ number
    #[arg(value_name = "IRQ")]
    irq: u32,
}

const PCI: &str = "/sys/bus/pci/devices/";

pub fn run(cli: &General, args: &IrqbalancePolicyArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    if was_planned(&root, args)?
        || has_interface_below(&root, &args.device)? && is_planned(cli, &root, args.irq)?
    {
        out.push_str("ban=true\n");
    }
    Ok(Exit::Planned)
}

/// Whether the last apply planned this IRQ, which still belongs to the same device and action.
fn was_planned(root: &Root, args: &IrqbalancePolicyArgs) -> Result<bool> {
    let kept = IrqbalanceRecord::load(root)?;
    let Some(was) = kept.planned.get(&args.irq) else {
        return Ok(false);
    };
    let address = args.device.trim_end_matches('/').strip_prefix(PCI);
    if address.is_some_and(|address| address != was.device) {
        return Ok(false);
    }
    Ok(Handlers::new(root).of(args.irq)?.contains(&was.action))
}

/// irqbalance passes a path outside /sys/devices for an IRQ whose device it does not know: that IRQ may belong to an
/// interface.
fn has_interface_below(root: &Root, device: &str) -> Result<bool> {
    let device = root.canonical(device)?;
    let Some(device) = device.filter(|path| path.starts_with("/sys/devices/")) else {
        return Ok(true);
    };
    for name in root.list(NET)?.unwrap_or_default() {
        let place = root.canonical(&format!("{NET}/{name}"))?;
        if place.is_some_and(|path| path.starts_with(&format!("{device}/"))) {
            return Ok(true);
        }
    }
    // The interface may be in another network namespace.
    Ok(class(root, &device)?.starts_with("0x02"))
}

fn is_planned(cli: &General, root: &Root, irq: u32) -> Result<bool> {
    let mut all = TargetArgs::default();
    all.select.if_present = true;
    // irqbalance's service has a network namespace of its own: interfaces of others are planned if selected.
    all.select.selectors = vec!["*".to_owned()];
    // The answer decides what irqbalance writes.
    read_policy(Purpose::Write, cli, root, &PolicyArgs::default())?;
    let (_, plan) = read_and_plan(Purpose::Compare, cli, root, &all, ReadOptions::default())?;
    Ok(plan
        .vectors()
        .any(|vector| vector.irq == irq && vector.cpus.is_some()))
}
