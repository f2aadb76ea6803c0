//! The way of a line from a queue's dot to a CPU. It crosses no text and no other interface: below the CPUs of a panel is
//! room where lines fan out, and lines to other panels and to interfaces below others pass between them.

use std::fmt::Write as _;

use super::layout::{Chip, Layout, MARGIN, Panel, Rect};

/// The path of a line, in the words of SVG. `card` is the index of the interface: lines of different interfaces pass
/// side by side.
pub(super) fn path(
    layout: &Layout,
    chip: &Chip,
    card: usize,
    dot: (i32, i32),
    cpu: (Rect, usize),
) -> String {
    let aside = 2 * i32::try_from(card % 8).unwrap_or(0);
    let (cell, to_panel) = cpu;
    let (Some(from), Some(to)) = (layout.panels.get(chip.panel), layout.panels.get(to_panel))
    else {
        return String::new();
    };
    let (x, end) = (cell.x + 6, cell.y + cell.h);
    let mut path = format!("M{} {}", dot.0, dot.1);
    let start = if chip.is_below_others {
        let lane = chip.rect.x - 2 - aside / 2;
        let _ = write!(
            path,
            "V{}H{lane}V{}",
            chip.rect.y - 3 - aside / 2,
            from.chips - 2
        );
        lane
    } else {
        let _ = write!(path, "V{}", from.chips - 2);
        dot.0
    };
    if chip.panel == to_panel {
        let (low, high) = (from.chips - 2, from.floor);
        let middle = (low + high) / 2;
        let _ = write!(path, "C{start} {middle} {x} {middle} {x} {high}V{end}");
    } else {
        across(&mut path, from, to, aside);
        let _ = write!(path, "H{x}V{end}");
    }
    path
}

/// From the fan of a panel to that of another, along the gaps between the panels.
fn across(path: &mut String, from: &Panel, to: &Panel, aside: i32) {
    let gap = |edge: i32| edge - MARGIN / 2 + aside - 7;
    let fan = |panel: &Panel| panel.floor + 8 + aside;
    // The gap left of a panel, or right of it.
    let beside = |panel: &Panel, right: bool| {
        gap(panel.rect.x + if right { panel.rect.w + MARGIN } else { 0 })
    };
    let (leave, enter) = (
        beside(from, to.column > from.column),
        beside(to, to.column < from.column),
    );
    let _ = write!(path, "V{}H{leave}", fan(from));
    if leave != enter {
        let below = gap(from.rect.y
            + if to.row < from.row {
                0
            } else {
                from.rect.h + MARGIN
            });
        let _ = write!(path, "V{below}H{enter}");
    }
    let _ = write!(path, "V{}", fan(to));
}
