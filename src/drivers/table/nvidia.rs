//! Drivers of NVIDIA (Mellanox).

use crate::drivers::row::Driver;
use crate::drivers::row::Fact::{
    AcceleratedRfs, ChannelVectors, ChannelsAlternate, MarksL4, PortsSharePool, QueuesAndRdma,
};

pub(super) const DRIVERS: &[Driver] = &[
    // Vectors that a function lends to its sub-functions (or has itself, as seen from there) carry queues, but none of
    // this interface.
    Driver::new(
        "mlx5_core",
        &[
            "mlx5_comp{n}@pci:{pci} = combined",
            "mlx5_combined{h}@pci:{pci} = combined",
            "mlx5_async{x}@pci:{pci} = control",
            "mlx5_{x}_eq@pci:{pci} = control",
            "mlx5_sf_comp{h}@pci:{pci} = control of another function",
            "mlx5_sf_{x}@pci:{pci} = control",
        ],
        &[
            "mlx5_comp7@pci:0000:17:00.0 = combined 7",
            "mlx5_sf_comp8@pci:0000:82:00.0 = control",
        ],
    )
    .page([
        "channel",
        "kept",
        "kept (IRQs live until unload or devlink reload)",
        "rewritten at every change of channels",
    ])
    .facts(&[
        AcceleratedRfs,
        QueuesAndRdma,
        ChannelVectors,
        ChannelsAlternate,
        MarksL4,
    ])
    // mlx5_core has always made the hash symmetric, and reports it since 6.15.
    .doubt(
        Some((6, 15)),
        "before Linux 6.15, mlx5_core does not report how the device changes the hash's input",
    ),
    // The last name has a port, and a number within the port.
    Driver::new(
        "mlx4_en",
        &[
            "mlx4-{n}@{pci} = combined of mlx4",
            "{if}-{n} = combined",
            "{if}-rx-{n} = rx",
            "mlx4_core@pci:{pci} = combined",
            "mlx4-async@pci:{pci} = control",
            "mlx4-comp-{n}@pci:{pci} = rdma",
            "mlx4-ib-{h}-{n}@{x} = rdma by order",
        ],
        &["mlx4-3@0000:82:00.0 = combined 3"],
    )
    .page([
        "from 1, divided among the ports",
        "kept",
        "kept (?)",
        "set by the driver",
    ])
    .facts(&[AcceleratedRfs, QueuesAndRdma, PortsSharePool])
    .bus_driver("mlx4_core"),
    Driver::new(
        "mlx5_core.sf",
        &[
            "mlx5_sf_comp{n}@pci:{pci} = combined by order",
            "mlx5_sf_ctrl{h}@pci:{pci} = control",
            "mlx5_comp{h}@pci:{pci} = control",
            "mlx5_async{x}@pci:{pci} = control",
        ],
        &["mlx5_sf_comp8@pci:0000:82:00.0 = combined 8"],
    ),
    // The handler of the last vector does nothing.
    Driver::new(
        "mlxbf_gige",
        &[
            "mlxbf_gige_rx = rx",
            "mlxbf_gige_error = control",
            "mlxbf_gige_llu_plu = control",
        ],
        &[],
    ),
];
