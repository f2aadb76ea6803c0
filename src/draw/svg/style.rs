//! The picture's colours and fonts, in the viewer's light or dark scheme. Light is the default.

/// The number of interface colours. Further interfaces reuse them, with other letters.
pub(super) const COLOURS: usize = 8;

/// For interface colour N, `kN` is a filled area with white text, `sN` a line.
pub(super) const STYLE: &str = "<style>
text { font: 12px system-ui, \"DejaVu Sans\", \"Liberation Sans\", sans-serif; fill: #1f2328 }
.title { font-size: 17px; font-weight: bold }
.heading { font-size: 15px; font-weight: bold }
.node { font-size: 13px; font-weight: bold }
.name, .key { font-weight: bold }
.dim { font-size: 12px; font-weight: normal; fill: #57606a }
.tiny { font-size: 9px; fill: #57606a }
.number { font-size: 11px; text-anchor: middle; fill: #57606a }
.label { font-size: 10px; font-weight: bold; text-anchor: middle }
text.on { fill: #fff }
.number.on { font-weight: normal }
.paper { fill: #fff }
.panel { fill: #f3f5f8; stroke: #d0d7de }
.l3 { fill: #e6eaef; stroke: none }
.core { fill: #cdd4dc; stroke: none }
.cpu { fill: #fff; stroke: #cdd4dc }
.isolated { fill: #e6eaef; stroke: #57606a; stroke-dasharray: 3 2 }
.chip { fill: #fff; stroke-width: 1.5 }
.line { fill: none; stroke-width: 1.5; stroke-linejoin: round }
.thin { stroke-width: 0.9; opacity: 0.75 }
.remote { stroke-dasharray: 5 3 }
.away { fill: none; stroke: #ffd33d; stroke-width: 2.5 }
.k0 { fill: #1f6feb } .k1 { fill: #bc4c00 } .k2 { fill: #1a7f37 } .k3 { fill: #8250df }
.k4 { fill: #bf3989 } .k5 { fill: #0e7490 } .k6 { fill: #7d5a00 } .k7 { fill: #57606a }
.s0 { stroke: #1f6feb } .s1 { stroke: #bc4c00 } .s2 { stroke: #1a7f37 } .s3 { stroke: #8250df }
.s4 { stroke: #bf3989 } .s5 { stroke: #0e7490 } .s6 { stroke: #7d5a00 } .s7 { stroke: #57606a }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.dim, .tiny, .number { fill: #9198a1 }
.paper { fill: #0d1117 }
.panel { fill: #161b22; stroke: #30363d }
.l3 { fill: #21262d }
.core { fill: #3d444d }
.cpu { fill: #0d1117; stroke: #3d444d }
.isolated { fill: #21262d; stroke: #9198a1 }
.chip { fill: #0d1117 }
.s0 { stroke: #58a6ff } .s1 { stroke: #f0883e } .s2 { stroke: #3fb950 } .s3 { stroke: #bc8cff }
.s4 { stroke: #f778ba } .s5 { stroke: #39c5dd } .s6 { stroke: #d4a72c } .s7 { stroke: #9198a1 }
}
</style>
";
