//! The bus device behind an interface: its driver, node, PCI Express link and IRQs.

use crate::cpuset::{CpuSet, shown};
use crate::drivers::Driver;
use crate::machine::interface::is_pci_address;
use crate::machine::{Device, PcieLink, TreeInterrupt};
use crate::read::files::{Dir, number, number_after};
use crate::read::interrupts::numbers;
use crate::read::others::{PCI, bus_device_above};
use crate::read::{ReadOptions, device_tree};
use crate::root::{Result, Root};

pub(super) fn read_device(
    link: &Dir,
    bus: Option<&str>,
    options: ReadOptions<'_>,
) -> Result<Device> {
    // The PCI ancestor of an adapter on USB is its controller, whose vectors are not the adapter's.
    let (controller, of_controller) = controller(link, bus)?.unzip();
    let device = if controller.is_some() {
        link.clone()
    } else {
        bus_device_above(link.clone())?
    };
    let parent = device.link_name("physfn")?;
    let most = if options.settings_only {
        None
    } else {
        read_link(&device, "max")?
    };
    let vendor = device.read_as("vendor", hex)?;
    let id = match vendor {
        Some(_) => device.read_as("device", hex)?,
        None => None,
    };
    let mut own = None;
    // A device below a controller has the controller's node (`device_add`).
    let inherited = if controller.is_some() { usize::MAX } else { 1 };
    for above in device.and_above().take(inherited) {
        own = own.or(above.read_node()?);
    }
    if let Some(parent) = device.canonical("physfn")?.filter(|_| own.is_none()) {
        own = parent.read_node()?;
    }
    let (irqs, has_line) = match controller {
        Some(_) => Default::default(),
        None => read_irqs(&device)?,
    };
    let is_unlisted = irqs.is_empty() && bus == Some("platform");
    Ok(Device {
        address: device.name().to_owned(),
        is_parent: device.path != link.path,
        pci_id: vendor
            .zip(id)
            .map(|(vendor, id)| format!("{vendor:04x}:{id:04x}")),
        node: own,
        local_cpus: device.read_as("local_cpulist", CpuSet::parse_list)?,
        pcie_mtps: most.map_or(0, PcieLink::total),
        link: match most {
            Some(most) if parent.is_none() => read_links(&device, most)?,
            _ => None,
        },
        parent,
        irqs,
        has_line,
        tree: match of_controller {
            Some(tree) => tree,
            None if is_unlisted => device_tree::read(&device)?,
            None => Vec::new(),
        },
        controller,
    })
}

/// Driver and IRQs; those of the device tree if sysfs lists none.
type Controller = ((String, Vec<u32>), Vec<TreeInterrupt>);

/// The controller of a USB or SDIO device.
fn controller(link: &Dir, bus: Option<&str>) -> Result<Option<Controller>> {
    let is_hub: fn(&str) -> bool = match bus {
        Some("usb") => |name| number_after(name, "usb", u32::MAX).is_some(),
        Some("sdio") => |name| name == "mmc_host",
        _ => return Ok(None),
    };
    let Some(hub) = link.and_above().find(|above| is_hub(above.name())) else {
        return Ok(Some(Default::default()));
    };
    let device = hub.above();
    let driver = device.link_name("driver")?.unwrap_or_default();
    let irqs = read_irqs(&device)?.0;
    let tree = if irqs.is_empty() {
        device_tree::read(&device)?
    } else {
        Vec::new()
    };
    Ok(Some(((driver, irqs), tree)))
}

pub(super) fn hex(text: &str) -> Result<u32, String> {
    let text = text.trim();
    text.strip_prefix("0x")
        .and_then(|hex| u32::from_str_radix(hex, 16).ok())
        .ok_or_else(|| format!("`{}` is not a number such as 0x1003", shown(text)))
}

fn read_link(device: &Dir, which: &str) -> Result<Option<PcieLink>> {
    // "8.0 GT/s PCIe", on older kernels "8 GT/s"; "Unknown" and "Unknown speed".
    let parse = |text: &str| {
        let rate = text.split_whitespace().next().unwrap_or("Unknown");
        if rate.eq_ignore_ascii_case("unknown") {
            return Some(0);
        }
        let (whole, tenths) = rate.split_once('.').unwrap_or((rate, "0"));
        let number = |digits: &str| digits.parse::<u16>().ok().map(u64::from);
        Some(number(whole)? * 1000 + number(tenths)?.min(9) * 100)
    };
    let mtps = device.read_as(&format!("{which}_link_speed"), |text| {
        parse(text).ok_or("is not a speed such as `8.0 GT/s PCIe`")
    })?;
    let lanes = device.read_as(&format!("{which}_link_width"), number::<u8>)?;
    // 255 is the kernel's "unknown".
    let (mtps, lanes) = (mtps.unwrap_or(0), lanes.unwrap_or(0).into());
    Ok((mtps > 0 && ![0, 255].contains(&lanes)).then_some(PcieLink { mtps, lanes }))
}

/// The current link, and the best one of which both ends are capable.
fn read_links(device: &Dir, most: PcieLink) -> Result<Option<(PcieLink, PcieLink)>> {
    let above = device.above();
    if !is_pci_address(above.name()) {
        return Ok(None);
    }
    let Some(now) = read_link(device, "current")? else {
        return Ok(None);
    };
    Ok(read_link(&above, "max")?.map(|port| (now, most.least(port))))
}

pub(crate) fn irqs_of(root: &Root, address: &str) -> Result<Vec<u32>> {
    Ok(read_irqs(&root.dir(format!("{PCI}/{address}")))?.0)
}

/// The IRQs, and whether they are the line of a device without MSI; 0 is no line.
fn read_irqs(device: &Dir) -> Result<(Vec<u32>, bool)> {
    let msi = device.dir("msi_irqs");
    let names = msi.names()?;
    let mut irqs: Vec<u32> = numbers(names.iter().map(String::as_str)).ok_or_else(|| {
        let reason = "has a name that is not the number of an IRQ";
        device.root.content_error(&msi.path, reason)
    })?;
    irqs.sort_unstable();
    if !irqs.is_empty() {
        return Ok((irqs, false));
    }
    let line = device.read_as("irq", number::<u32>)?;
    irqs.extend(line.filter(|&line| line != 0));
    let has_line = !irqs.is_empty();
    Ok((irqs, has_line))
}

pub(super) fn read_driver(link: &Dir) -> Result<Option<String>> {
    // The port of a modem (`/sys/class/wwan`) has no driver: the modem above it has.
    let is_wwan = link.link_name("subsystem")?.as_deref() == Some("wwan");
    for device in link.and_above().take(if is_wwan { usize::MAX } else { 1 }) {
        if let Some(driver) = device.link_name("driver")? {
            return Ok(Some(Driver::on_bus(driver)));
        }
    }
    // Dumps may lack links. Only Xen's driver binds to such a device.
    Ok((link.read_text("modalias")?.trim_end() == "xen:vif").then(|| "vif".to_owned()))
}
