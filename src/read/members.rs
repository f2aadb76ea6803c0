//! Which IRQs belong to a device, by the kernel's list, else by the device tree and by names.

use std::collections::BTreeMap;

use itertools::Itertools as _;

use crate::drivers::{ActionName, Driver, DriverPatterns};
use crate::machine::interface::is_pci_address;
use crate::machine::{Device, Interface, Role, TreeInterrupt};
use crate::read::handlers::Handlers;
use crate::read::interrupts::Interrupts;
use crate::read::queues::Reported;
use crate::root::Result;

pub(super) struct Port<'a> {
    pub(super) interface: &'a mut Interface,
    pub(super) patterns: DriverPatterns<'a>,
    pub(super) reported: Reported,
    /// Whether no other device has this driver, or all its devices have the same IRQs.
    pub(super) is_only: bool,
    /// Names tell which queues the vectors serve.
    pub(super) is_numbered: bool,
}

pub(super) struct Members {
    pub(super) requested: Vec<(u32, Vec<String>)>,
    pub(super) in_tree: BTreeMap<u32, Option<String>>,
    /// The device has no other IRQs.
    pub(super) are_all: bool,
}

impl Members {
    pub(super) fn read(handlers: &Handlers<'_>, ports: &mut [Port]) -> Result<Self> {
        if ports[0].interface.device.has_line && is_line_of_others(handlers, ports)? {
            for port in &mut *ports {
                port.interface.device.irqs.clear();
            }
        }
        let ports = &*ports;
        let device = &ports[0].interface.device;
        let tree: &[_] = match device.controller {
            Some(_) => &[],
            None => &device.tree,
        };
        let in_tree = in_tree(handlers, tree, |irq| has_own_handler(handlers, ports, irq))?;
        let is_half = |action: &String| {
            let mut named = classified(ports, action);
            named.any(|named| matches!(named.role, Role::Rx | Role::Tx))
        };
        let listed = |is_own: &dyn Fn(u32, &String) -> bool| -> Result<Vec<_>> {
            let listed = handlers.listed()?.iter().map(|(&irq, actions)| {
                let own = actions.iter().filter(|action| is_own(irq, action));
                (irq, own.cloned().collect_vec())
            });
            Ok(listed.collect_vec())
        };
        let mut requested = match device.irqs[..] {
            // Xen, platform and other devices without a list.
            [] => listed(&|irq, action| in_tree.contains_key(&irq) || has_name_of(ports, action))?,
            // The device has an IRQ for each direction, of which sysfs has one (pasemi_mac).
            [only] if handlers.of(only)?.iter().any(is_half) => {
                listed(&|irq, action| irq != only && has_name_of(ports, action) && is_half(action))?
            }
            _ => Vec::new(),
        };
        // Most drivers free the IRQ of an interface that is down, which may be a line shared with others.
        let may_be_of_others =
            device.irqs.len() == 1 && ports.iter().all(|port| port.interface.is_down);
        for &irq in &device.irqs {
            let mut actions = handlers.of(irq)?;
            actions.retain(|action| !may_be_of_others || may_be_own(ports, action));
            requested.push((irq, actions));
        }
        requested.retain(|(_, actions)| !actions.is_empty());
        // Without those of the PHY, which is another device of the tree.
        let is_of_mac = |(irq, actions): &(u32, Vec<String>)| {
            in_tree.contains_key(irq)
                || !actions
                    .iter()
                    .all(|action| DriverPatterns::is_of_phy(action))
        };
        let of_mac = requested
            .iter()
            .filter(|request| is_of_mac(request))
            .count();
        let are_all =
            !device.irqs.is_empty() || in_tree.len() == tree.len() && of_mac == in_tree.len();
        Ok(Self {
            requested,
            in_tree,
            are_all,
        })
    }
}

/// IRQs with the numbers of a device tree, each with its name there. `may_be_own`: several controllers may have a number
/// that is not at a GIC.
fn in_tree(
    handlers: &Handlers<'_>,
    tree: &[TreeInterrupt],
    may_be_own: impl Fn(u32) -> Result<bool>,
) -> Result<BTreeMap<u32, Option<String>>> {
    let mut found = BTreeMap::new();
    for of_one_cell in [false, true] {
        let listed = tree
            .iter()
            .filter(|interrupt| interrupt.of_one_cell == of_one_cell);
        let listed: BTreeMap<u32, _> = listed.map(|one| (one.hwirq, &one.name)).collect();
        if listed.is_empty() {
            continue;
        }
        for (irq, number) in handlers.numbered(!of_one_cell)? {
            let Some(&name) = listed.get(&number) else {
                continue;
            };
            if !of_one_cell || may_be_own(irq)? {
                found.insert(irq, name.clone());
            }
        }
    }
    Ok(found)
}

pub(super) fn classified<'p>(
    ports: &'p [Port],
    action: &'p str,
) -> impl Iterator<Item = ActionName<'p>> {
    ports
        .iter()
        .filter_map(move |port| port.patterns.classify(action))
}

fn has_name_of(ports: &[Port], action: &str) -> bool {
    ports.iter().any(|port| {
        let interface = &*port.interface;
        let named = port.patterns.classify(action);
        named.and_then(|named| named.interface) == Some(&interface.name)
            || begins_with(action, &interface.name)
            || names_device(action, &interface.device.address)
            || port.is_only
                && (port.patterns.has_queue_name(action) || begins_with_driver(port, action))
    })
}

/// A device that uses MSI has a line, too, which `irq` shows where the list of its IRQs is absent or empty (Linux 5.17 to
/// 5.19 on Xen): other IRQs have its names.
fn is_line_of_others(handlers: &Handlers<'_>, ports: &[Port]) -> Result<bool> {
    let line = ports[0].interface.device.irqs[0];
    let mut others = handlers.listed()?.iter().filter(|(irq, _)| **irq != line);
    let is_named = others.any(|(_, actions)| actions.iter().any(|name| has_name_of(ports, name)));
    Ok(is_named && !has_own_handler(handlers, ports, line)?)
}

fn has_own_handler(handlers: &Handlers<'_>, ports: &[Port], irq: u32) -> Result<bool> {
    let is_own = |action: &String| {
        !DriverPatterns::is_of_phy(action)
            && (may_be_own(ports, action)
                || has_name_of(ports, action)
                || ports.iter().any(|port| begins_with_driver(port, action)))
    };
    Ok(handlers.of(irq)?.iter().any(is_own))
}

fn may_be_own(ports: &[Port], action: &str) -> bool {
    ports.iter().any(|port| {
        let Interface { name, device, .. } = &*port.interface;
        let named = port.patterns.classify(action);
        (!action.contains("pci:") || action.contains(&device.address))
            && named.is_some_and(|named| named.interface.is_none_or(|interface| interface == name))
    })
}

/// Whether a name has the device's address (`mlx5_comp0@pci:0000:81:00.0`), or begins with its name on the bus:
/// `30be0000.ethernet` of a platform device; `vif0-q1-rx` of Xen's `vif-0`, `vif1.0-q1-rx` of the other end, `vif-1-0`;
/// `ibmvnic-30000003-rx1` of POWER's `30000003`.
fn names_device(action: &str, device: &str) -> bool {
    let starts = |with: &str| begins_with(action, with);
    match device.strip_prefix("vif-") {
        Some(handle) => starts(&format!("vif{}", handle.replace('-', "."))),
        None if is_pci_address(device) => action.contains(device),
        None => !device.is_empty() && (starts(device) || starts(&format!("ibmvnic-{device}"))),
    }
}

fn begins_with_driver(port: &Port, action: &str) -> bool {
    let driver = port.interface.driver.as_deref();
    driver.is_some_and(|driver| begins_with(action, driver))
}

pub(super) fn begins_with(action: &str, name: &str) -> bool {
    let rest = action.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '@', '_', ' ']))
}

const USB: [&str; 7] = ["xhci", "ehci", "ohci", "uhci", "dwc2", "dwc3", "musb"];
/// `mmc1`, `fe310000.mmc`, `dw-mci`, `sunxi-mmc`, `mmci-pl18x (cmd)`, `mvsdio`.
const SDIO: [&str; 4] = ["mmc", "mci", "sdhci", "sdio"];
const VMBUS: &str = "Hyper-V VMbus";

/// The controller that interrupts for a device, with its IRQs: if the device's path does not tell them, by the
/// handlers' names, else the only USB controller; for a `VMBus` device the interrupt of `hv_vmbus`; the portals of DPAA.
pub(super) fn controller(
    handlers: &Handlers<'_>,
    interface: &Interface,
) -> Result<Option<(String, Vec<u32>)>> {
    let Device {
        address,
        controller: known,
        tree,
        ..
    } = &interface.device;
    let is_vmbus = known.is_none() && interface.vmbus.is_some();
    let portals = Driver::of(interface.driver.as_deref()).map_or("", |row| row.portals);
    if !is_vmbus && portals.is_empty() && known.as_ref().is_none_or(|(_, irqs)| !irqs.is_empty()) {
        return Ok(known.clone());
    }
    let listed = handlers.listed()?;
    if !portals.is_empty() {
        let irqs = listed.iter().filter(|(_, actions)| {
            let mut actions = actions.iter();
            actions.any(|action| action.starts_with(portals))
        });
        let irqs = irqs.map(|(irq, _)| *irq).collect_vec();
        return Ok((!irqs.is_empty()).then(|| (portals.to_owned(), irqs)));
    }
    if is_vmbus {
        // Every CPU has it: a row without a number on x86, a per-CPU IRQ elsewhere (`vmbus_drv.c`).
        return match named(listed, |action| action == VMBUS).next() {
            Some(found) => Ok(Some(found)),
            None => Ok((handlers.has_row("HYP")?).then(|| ("HYP".to_owned(), Vec::new()))),
        };
    }
    // Handlers have the number of the bus (`xhci-hcd:usb1`) or of the host (`mmc1`), with which the device's name
    // begins, or a name of the host's driver alone.
    let host = address.split(['-', ':']).next().unwrap_or_default();
    let is_bus = host.bytes().all(|byte| byte.is_ascii_digit());
    let of_bus = format!(":usb{host}");
    let is_of_host = |action: &str| {
        if is_bus {
            action.ends_with(&of_bus)
        } else {
            action == host
        }
    };
    let kinds = if is_bus { &USB[..] } else { &SDIO };
    let is_of_kind = |action: &str| kinds.iter().any(|kind| action.contains(kind));
    let may_be_host = |irq| Ok((handlers.of(irq)?.iter()).any(|action| is_of_kind(action)));
    let numbers = in_tree(handlers, tree, may_be_host)?;
    let of_tree = || {
        let name = |irq| listed.get(irq)?.first();
        let irqs = numbers.keys().filter(|irq| name(irq).is_some());
        let irqs = irqs.copied().collect_vec();
        Some((name(irqs.first()?)?.clone(), irqs))
    };
    let of_host = named(listed, is_of_host).next();
    let only = || named(listed, is_of_kind).exactly_one().ok();
    Ok((of_host.or_else(of_tree).or_else(only)).or_else(|| known.clone()))
}

fn named(
    listed: &Interrupts,
    is_own: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (String, Vec<u32>)> {
    listed.iter().filter_map(move |(&irq, actions)| {
        let action = actions.iter().find(|action| is_own(action))?;
        Some((action.split(':').next()?.to_owned(), vec![irq]))
    })
}
