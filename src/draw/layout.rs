//! The positions of everything in the picture, in whole units: panels for nodes, in them boxes for caches, cores and
//! CPUs, and below these the interfaces.

use std::collections::BTreeMap;

use crate::draw::picture::{CacheGroup, InterfacePicture, Picture};
use nicpin::cpuset::CpuSet;

/// Space around everything, and between panels.
pub(super) const MARGIN: i32 = 20;
/// The maximum width of a row of panels, unless a single panel is wider; and of the picture.
pub(super) const WIDEST: i32 = 1720;
const CELL: (i32, i32) = (38, 29);
const CORE_PAD: i32 = 2;
const CORE_GAP: i32 = 4;
const GROUP_PAD: i32 = 7;
const GROUP_HEAD: i32 = 8;
const GROUP_GAP: i32 = 8;
const PANEL_PAD: i32 = 12;
const PANEL_HEAD: i32 = 28;
/// A further line of a panel's heading.
const HEAD_LINE: i32 = 16;
/// Between the last CPUs and the first interface, where lines turn.
const TURN: i32 = 48;
/// The two lines of text of an interface.
const CHIP_HEAD: i32 = 40;
const CHIP_GAP: i32 = 16;
/// The least and the greatest distance between the centres of two dots.
const DOTS: (i32, i32) = (11, 44);
const NARROWEST: i32 = 260;

/// How wide a text is in a font of this size, in the widest of the fonts (`DejaVu` Sans).
pub(super) fn width(text: &str, size: i32) -> i32 {
    i32::try_from(text.chars().count()).unwrap_or(0) * size * 62 / 100
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) w: i32,
    pub(super) h: i32,
}

impl Rect {
    /// What is so far within the edges.
    pub(super) fn within(self, by: i32) -> Self {
        Self {
            x: self.x + by,
            y: self.y + by,
            w: self.w - 2 * by,
            h: self.h - 2 * by,
        }
    }
}

/// Queues, and the centres of their dots.
pub(super) type Dots = Vec<(u32, (i32, i32))>;

/// The positions of one scene, or of one panel, from its top left corner.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) width: i32,
    pub(super) height: i32,
    /// By node, in the picture's order; last the one of interfaces whose node is unknown, if any.
    pub(super) panels: Vec<Rect>,
    /// L3 caches.
    pub(super) caches: Vec<Rect>,
    pub(super) cores: Vec<(Rect, CpuSet)>,
    pub(super) cells: BTreeMap<u32, Rect>,
    /// By interface: its box, and the centre of each queue's dot.
    pub(super) chips: BTreeMap<usize, (Rect, Dots)>,
}

impl Layout {
    pub(super) fn new(picture: &Picture) -> Self {
        let at = |node: Option<u32>| -> Vec<(usize, &InterfacePicture)> {
            let cards = picture.cards.iter().enumerate();
            cards.filter(|(_, card)| card.node == node).collect()
        };
        let mut contents: Vec<_> = (picture.nodes.iter())
            .map(|node| (node.groups.as_slice(), at(Some(node.id))))
            .collect();
        contents.extend(Some((&[][..], at(None))).filter(|(_, cards)| !cards.is_empty()));
        let text = (picture.nodes.iter())
            .map(|node| width(&node.neighbours, 12))
            .max()
            .unwrap_or(0);
        let head = PANEL_HEAD + if text > 0 { HEAD_LINE } else { 0 };
        let columns = contents.iter().map(|(groups, _)| widest_row(groups)).max();
        let inner = columns.unwrap_or(0).max(NARROWEST).max(text);
        let panels: Vec<Self> = (contents.iter())
            .map(|(groups, cards)| Self::panel(groups, cards, inner, head, picture.lines))
            .collect();

        // In rows, all of one width, each row as high as its highest panel.
        let count = i32::try_from(panels.len()).unwrap_or(i32::MAX).max(1);
        let in_row = per_row(count, inner + 2 * PANEL_PAD, MARGIN, WIDEST);
        let mut all = Self::default();
        let (mut x, mut y, mut height) = (0, 0, 0);
        for (at, panel) in (0_i32..).zip(panels) {
            if at > 0 && at % in_row == 0 {
                (x, y, height) = (0, y + height + MARGIN, 0);
            }
            height = height.max(panel.height);
            let (left, width) = (x, panel.width);
            x += width + MARGIN;
            all.add(panel, left, y);
            for rect in all.panels.iter_mut().filter(|rect| rect.y == y) {
                rect.h = height;
            }
            (all.width, all.height) = (all.width.max(left + width), y + height);
        }
        all
    }

    /// Adds what is at this place.
    fn add(&mut self, other: Self, x: i32, y: i32) {
        let moved = |rect: Rect| Rect {
            x: rect.x + x,
            y: rect.y + y,
            ..rect
        };
        self.panels.extend(other.panels.into_iter().map(moved));
        self.caches.extend(other.caches.into_iter().map(moved));
        let cores = other.cores.into_iter();
        self.cores
            .extend(cores.map(|(rect, cpus)| (moved(rect), cpus)));
        let cells = other.cells.into_iter();
        self.cells
            .extend(cells.map(|(cpu, rect)| (cpu, moved(rect))));
        for (card, (rect, mut dots)) in other.chips {
            for (_, dot) in &mut dots {
                *dot = (dot.0 + x, dot.1 + y);
            }
            self.chips.insert(card, (moved(rect), dots));
        }
    }

    fn panel(
        groups: &[CacheGroup],
        cards: &[(usize, &InterfacePicture)],
        inner: i32,
        head: i32,
        lines: bool,
    ) -> Self {
        let mut panel = Self::default();
        let (mut x, mut y, mut row_height) = (PANEL_PAD, head, 0);
        for group in groups {
            let (w, h) = size(group);
            if x > PANEL_PAD && x + w > PANEL_PAD + inner {
                (x, y, row_height) = (PANEL_PAD, y + row_height + GROUP_GAP, 0);
            }
            panel.add_group(group, Rect { x, y, w, h });
            x += w + GROUP_GAP;
            row_height = row_height.max(h);
        }
        y += row_height;
        if !cards.is_empty() {
            y += if lines { TURN } else { GROUP_GAP };
            let (columns, width) = chip_columns(cards, inner);
            for row in cards.chunks(columns) {
                let rows = row.iter().map(|(_, card)| dot_rows(card, width).1);
                let h = CHIP_HEAD + DOTS.0 * rows.max().unwrap_or(0) + 2;
                for (at, (card, interface)) in (0_i32..).zip(row) {
                    let x = PANEL_PAD + at * (width + CHIP_GAP);
                    let rect = Rect { x, y, w: width, h };
                    panel.chips.insert(*card, (rect, dots(interface, rect)));
                }
                y += h + CHIP_GAP;
            }
            y -= CHIP_GAP;
        }
        (panel.width, panel.height) = (inner + 2 * PANEL_PAD, y + PANEL_PAD);
        panel.panels.push(Rect {
            x: 0,
            y: 0,
            w: panel.width,
            h: panel.height,
        });
        panel
    }

    fn add_group(&mut self, group: &CacheGroup, rect: Rect) {
        self.caches.extend(group.is_l3.then_some(rect));
        let (columns, core) = (columns(group), core_size(group));
        for (at, cpus) in (0_i32..).zip(&group.cores) {
            let x = rect.x + GROUP_PAD + at % columns * (core.0 + CORE_GAP);
            let y = rect.y + GROUP_PAD + GROUP_HEAD + at / columns * (core.1 + CORE_GAP);
            let (w, h) = (core.0, height_of(cpus));
            self.cores.push((Rect { x, y, w, h }, cpus.clone()));
            let cells = (0_i32..).zip(cpus.iter()).map(|(thread, cpu)| {
                let (x, y) = (x + CORE_PAD, y + CORE_PAD + thread * CELL.1);
                let (w, h) = CELL;
                (cpu, Rect { x, y, w, h })
            });
            self.cells.extend(cells);
        }
    }
}

/// How many of `count` boxes are in a row: there are as few rows as have room for them, and they are filled evenly.
fn per_row(count: i32, width: i32, gap: i32, room: i32) -> i32 {
    let most = ((room + gap) / (width + gap)).clamp(1, count);
    let rows = (count + most - 1) / most;
    (count + rows - 1) / rows
}

/// How many interfaces are in a row of a panel, and how wide each is: as many as have room for their text.
fn chip_columns(cards: &[(usize, &InterfacePicture)], inner: i32) -> (usize, i32) {
    let least = |card: &InterfacePicture| {
        let first = format!("{} {} {}", card.key, card.name, card.queues_text());
        width(&card.what, 12).max(width(&first, 13) + 20) + 2 * GROUP_PAD
    };
    let widest = cards.iter().map(|(_, card)| least(card)).max().unwrap_or(0);
    let count = i32::try_from(cards.len()).unwrap_or(1);
    let columns = per_row(count, widest, CHIP_GAP, inner);
    let width = (inner + CHIP_GAP) / columns - CHIP_GAP;
    (usize::try_from(columns).unwrap_or(1), width)
}

/// How many dots are in a row of an interface, and the rows.
fn dot_rows(card: &InterfacePicture, width: i32) -> (i32, i32) {
    let count = i32::try_from(card.queues.len()).unwrap_or(i32::MAX);
    let in_row = per_row(count.max(1), DOTS.0, 0, width - 2 * GROUP_PAD);
    (in_row, (count + in_row - 1) / in_row)
}

/// The dots of the queues, spread over the width of an interface.
fn dots(card: &InterfacePicture, rect: Rect) -> Dots {
    let (in_row, _) = dot_rows(card, rect.w);
    let step = ((rect.w - 2 * GROUP_PAD) / in_row).clamp(DOTS.0, DOTS.1);
    let dots = (0_i32..).zip(&card.queues).map(|(at, &queue)| {
        let x = rect.x + GROUP_PAD + step / 2 + at % in_row * step;
        (queue, (x, rect.y + GROUP_PAD + at / in_row * DOTS.0))
    });
    dots.collect()
}

/// The number of cores in a row: up to 8 in one row, of more a number that fills the rows.
fn columns(group: &CacheGroup) -> i32 {
    let count = i32::try_from(group.cores.len()).unwrap_or(i32::MAX);
    if count <= 8 {
        return count.max(1);
    }
    let full = (6..=16).rev().find(|columns| count % columns == 0);
    full.unwrap_or(12)
}

fn height_of(core: &CpuSet) -> i32 {
    i32::try_from(core.len()).unwrap_or(0) * CELL.1 + 2 * CORE_PAD
}

fn core_size(group: &CacheGroup) -> (i32, i32) {
    let highest = group.cores.iter().map(height_of).max();
    (CELL.0 + 2 * CORE_PAD, highest.unwrap_or(0))
}

fn size(group: &CacheGroup) -> (i32, i32) {
    let (columns, core) = (columns(group), core_size(group));
    let rows = (i32::try_from(group.cores.len()).unwrap_or(0) + columns - 1) / columns;
    let w = columns * (core.0 + CORE_GAP) - CORE_GAP + 2 * GROUP_PAD;
    let h = rows * (core.1 + CORE_GAP) - CORE_GAP + 2 * GROUP_PAD + GROUP_HEAD;
    (w, h)
}

/// The width of a row of caches: as many as make the node about twice as wide as high.
fn widest_row(groups: &[CacheGroup]) -> i32 {
    let sizes = || groups.iter().map(size);
    let widest = sizes().map(|(w, _)| w).max().unwrap_or(0);
    let highest = sizes().map(|(_, h)| h).max().unwrap_or(0);
    let count = i32::try_from(groups.len()).unwrap_or(0);
    let row = |across: i32| across * (widest + GROUP_GAP) - GROUP_GAP;
    let is_wide = |across: &i32| {
        let down = (count + across - 1) / across;
        row(*across) >= 3 * down * highest / 2 || *across == count
    };
    (1..=count).find(is_wide).map_or(0, row)
}
