//! The bus device that an interface, or an RDMA device, belongs to.

use crate::machine::interface::is_pci_address;
use crate::read::files::name_of;
use crate::root::Root;

/// Where the bus device behind an interface is. `link` is where its `device` leads: the PCI function itself, or
/// a child of it (virtio, an auxiliary device) that has neither `msi_irqs` nor `numa_node`.
pub(crate) fn device_path(root: &Root, link: &str) -> String {
    let mut above = link;
    while above.len() > "/sys/devices".len() {
        if is_pci_address(name_of(above)) || root.exists(&format!("{above}/msi_irqs")) {
            return above.to_owned();
        }
        above = above.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    link.to_owned()
}
