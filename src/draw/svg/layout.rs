//! The positions of everything in the picture, in whole units: panels for nodes, in them boxes for caches, cores and
//! CPUs, and below these the interfaces.

use std::collections::BTreeMap;

use crate::draw::picture::{CacheGroup, InterfacePicture, Picture};
use nicpin::cpuset::CpuSet;

/// Space around everything, and between panels.
pub(super) const MARGIN: i32 = 20;
/// The maximum width of a row of panels, unless a single panel is wider.
const WIDEST: i32 = 1720;
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
/// Between the last CPUs and the first interface, where lines fan out; many queues get more.
const FAN: i32 = 34;
/// The two lines of text of an interface.
const CHIP_HEAD: i32 = 40;
/// Between interfaces, where lines to the lower ones pass.
const CHIP_GAP: i32 = 16;
/// The width of a character of an interface's text, about.
const CHARACTER: i32 = 7;
/// The least and the greatest distance between the centres of two dots.
const DOTS: (i32, i32) = (11, 44);
const DOT_ROW: i32 = 11;
const NARROWEST: i32 = 260;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) w: i32,
    pub(super) h: i32,
}

impl Rect {
    fn moved(self, x: i32, y: i32) -> Self {
        Self {
            x: self.x + x,
            y: self.y + y,
            ..self
        }
    }
}

/// The positions of one scene, from its top left corner.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) width: i32,
    pub(super) height: i32,
    /// By node, in the picture's order; last the one of interfaces whose node is unknown, if any.
    pub(super) panels: Vec<Panel>,
    pub(super) groups: Vec<(Rect, bool)>,
    pub(super) cores: Vec<Rect>,
    /// By CPU: its box, and the index of its panel.
    pub(super) cells: BTreeMap<u32, (Rect, usize)>,
    /// By interface.
    pub(super) chips: BTreeMap<usize, Chip>,
}

/// A node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panel {
    pub(super) rect: Rect,
    /// The column and the row of the panel.
    pub(super) column: i32,
    pub(super) row: i32,
    /// The y below which it holds only interfaces.
    pub(super) floor: i32,
    /// The upper edge of its first interfaces.
    pub(super) chips: i32,
}

/// An interface.
#[derive(Debug, Clone, Default)]
pub(super) struct Chip {
    pub(super) rect: Rect,
    /// The index of its panel.
    pub(super) panel: usize,
    /// Whether other interfaces are between it and the CPUs.
    pub(super) is_below_others: bool,
    /// The centre of each queue's dot.
    pub(super) dots: BTreeMap<u32, (i32, i32)>,
}

impl Layout {
    pub(super) fn new(picture: &Picture) -> Self {
        let at = |node: Option<u32>| -> Vec<(usize, &InterfacePicture)> {
            picture
                .cards
                .iter()
                .enumerate()
                .filter(|(_, card)| card.node == node)
                .collect()
        };
        let mut contents: Vec<_> = picture
            .nodes
            .iter()
            .map(|node| (node.groups.as_slice(), at(Some(node.id))))
            .collect();
        contents.extend(Some((&[][..], at(None))).filter(|(_, cards)| !cards.is_empty()));

        let columns: Vec<i32> = contents
            .iter()
            .map(|(groups, _)| widest_row(groups))
            .collect();
        let line = picture
            .nodes
            .iter()
            .map(|node| node.neighbours.chars().count())
            .max()
            .unwrap_or(0);
        let head = PANEL_HEAD + if line > 0 { HEAD_LINE } else { 0 };
        let text = i32::try_from(line).unwrap_or(0) * CHARACTER;
        let inner = columns
            .into_iter()
            .max()
            .unwrap_or(0)
            .max(NARROWEST)
            .max(text);
        let drafts: Vec<Draft> = contents
            .iter()
            .map(|(groups, cards)| Draft::new(groups, cards, inner, head))
            .collect();
        Self::arrange(&drafts, inner + 2 * PANEL_PAD)
    }

    /// Panels in rows, all of one width, each row as high as its highest panel.
    fn arrange(drafts: &[Draft], panel: i32) -> Self {
        let count = i32::try_from(drafts.len()).unwrap_or(i32::MAX).max(1);
        let in_row = usize::try_from(per_row(count, panel, MARGIN, WIDEST)).unwrap_or(1);
        let mut layout = Self::default();
        let mut y = 0;
        for (row, in_this) in (0_i32..).zip(drafts.chunks(in_row)) {
            let height = in_this.iter().map(|draft| draft.height).max().unwrap_or(0);
            let mut x = 0;
            for (column, draft) in (0_i32..).zip(in_this) {
                let at = layout.panels.len();
                // At the bottom of the panel, so that the interfaces of a row are aligned.
                let low = y + height - draft.height;
                let rect = Rect {
                    x,
                    y,
                    w: panel,
                    h: height,
                };
                let (floor, chips) = (y + draft.floor, low + draft.first_chip);
                layout.panels.push(Panel {
                    rect,
                    column,
                    row,
                    floor,
                    chips,
                });
                layout.groups.extend(
                    draft
                        .groups
                        .iter()
                        .map(|&(rect, is_l3)| (rect.moved(x, y), is_l3)),
                );
                layout
                    .cores
                    .extend(draft.cores.iter().map(|rect| rect.moved(x, y)));
                layout.cells.extend(
                    draft
                        .cells
                        .iter()
                        .map(|&(cpu, rect)| (cpu, (rect.moved(x, y), at))),
                );
                layout.chips.extend(draft.chips.iter().map(|(card, chip)| {
                    let dots = chip
                        .dots
                        .iter()
                        .map(|(&queue, &(dx, dy))| (queue, (dx + x, dy + low)));
                    (
                        *card,
                        Chip {
                            rect: chip.rect.moved(x, low),
                            panel: at,
                            dots: dots.collect(),
                            ..*chip
                        },
                    )
                }));
                x += panel + MARGIN;
            }
            layout.width = layout.width.max(x - MARGIN);
            y += height + MARGIN;
        }
        layout.height = y - MARGIN;
        layout
    }
}

/// The positions of one panel, from its top left corner.
#[derive(Default)]
struct Draft {
    groups: Vec<(Rect, bool)>,
    cores: Vec<Rect>,
    cells: Vec<(u32, Rect)>,
    chips: Vec<(usize, Chip)>,
    /// The lower edge of the CPUs.
    floor: i32,
    /// The upper edge of the first interfaces.
    first_chip: i32,
    height: i32,
}

impl Draft {
    fn new(
        groups: &[CacheGroup],
        cards: &[(usize, &InterfacePicture)],
        inner: i32,
        head: i32,
    ) -> Self {
        let mut draft = Self::default();
        let (mut x, mut y, mut row_height) = (PANEL_PAD, head, 0);
        for group in groups {
            let (w, h) = size(group);
            if x > PANEL_PAD && x + w > PANEL_PAD + inner {
                (x, y, row_height) = (PANEL_PAD, y + row_height + GROUP_GAP, 0);
            }
            draft.add_group(group, Rect { x, y, w, h });
            x += w + GROUP_GAP;
            row_height = row_height.max(h);
        }
        y += row_height;
        draft.floor = y;
        if cards.is_empty() {
            draft.height = y + PANEL_PAD;
            return draft;
        }
        let queues: usize = cards.iter().map(|(_, card)| card.queues.len()).sum();
        y += FAN + i32::try_from(queues.min(128) / 3).unwrap_or(0);
        draft.first_chip = y;
        let (columns, width) = chip_columns(cards, inner);
        for row in cards.chunks(columns) {
            let x = |at: i32| PANEL_PAD + at * (width + CHIP_GAP);
            let place = |(at, (_, card)): (i32, &(usize, &InterfacePicture))| {
                chip(
                    card,
                    Rect {
                        x: x(at),
                        y,
                        w: width,
                        h: 0,
                    },
                )
            };
            let mut chips: Vec<Chip> = (0_i32..).zip(row).map(place).collect();
            let height = chips.iter().map(|chip| chip.rect.h).max().unwrap_or(0);
            for chip in &mut chips {
                (chip.rect.h, chip.is_below_others) = (height, y > draft.first_chip);
            }
            draft
                .chips
                .extend(row.iter().map(|(card, _)| *card).zip(chips));
            y += height + CHIP_GAP;
        }
        draft.height = y - CHIP_GAP + PANEL_PAD;
        draft
    }

    fn add_group(&mut self, group: &CacheGroup, rect: Rect) {
        self.groups.push((rect, group.is_l3));
        let (columns, core) = (columns(group), core_size(group));
        for (at, cpus) in (0_i32..).zip(&group.cores) {
            let x = rect.x + GROUP_PAD + at % columns * (core.0 + CORE_GAP);
            let y = rect.y + GROUP_PAD + GROUP_HEAD + at / columns * (core.1 + CORE_GAP);
            self.cores.push(Rect {
                x,
                y,
                w: core.0,
                h: height_of(cpus),
            });
            self.cells
                .extend((0_i32..).zip(cpus.iter()).map(|(thread, cpu)| {
                    let y = y + CORE_PAD + thread * CELL.1;
                    (
                        cpu,
                        Rect {
                            x: x + CORE_PAD,
                            y,
                            w: CELL.0,
                            h: CELL.1,
                        },
                    )
                }));
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
    let characters = |card: &InterfacePicture| {
        card.what
            .chars()
            .count()
            .max(card.name.chars().count() + card.key.len() + 6)
    };
    let widest = cards
        .iter()
        .map(|(_, card)| characters(card))
        .max()
        .unwrap_or(0);
    let least = i32::try_from(widest).unwrap_or(0) * CHARACTER + 2 * GROUP_PAD;
    let count = i32::try_from(cards.len()).unwrap_or(1);
    let columns = per_row(count, least, CHIP_GAP, inner);
    (
        usize::try_from(columns).unwrap_or(1),
        (inner + CHIP_GAP) / columns - CHIP_GAP,
    )
}

/// An interface, high enough for its queues, which are spread over its width.
fn chip(card: &InterfacePicture, rect: Rect) -> Chip {
    let (room, count) = (
        rect.w - 2 * GROUP_PAD,
        i32::try_from(card.queues.len()).unwrap_or(i32::MAX).max(1),
    );
    let per_row = per_row(count, DOTS.0, 0, room);
    let rows = (count + per_row - 1) / per_row;
    let step = (room / per_row).clamp(DOTS.0, DOTS.1);
    let dots = (0_i32..).zip(&card.queues).map(|(at, &queue)| {
        let x = rect.x + GROUP_PAD + step / 2 + at % per_row * step;
        (queue, (x, rect.y + GROUP_PAD + at / per_row * DOT_ROW))
    });
    let dots: BTreeMap<u32, (i32, i32)> = dots.collect();
    let rows = if dots.is_empty() { 0 } else { rows };
    Chip {
        rect: Rect {
            h: CHIP_HEAD + rows * DOT_ROW + 2,
            ..rect
        },
        dots,
        ..Chip::default()
    }
}

/// The number of cores in a row: up to 8 in one row, of more a number that fills the rows.
fn columns(group: &CacheGroup) -> i32 {
    let count = i32::try_from(group.cores.len()).unwrap_or(i32::MAX);
    if count <= 8 {
        return count.max(1);
    }
    (6..=16)
        .rev()
        .find(|columns| count % columns == 0)
        .unwrap_or(12)
}

fn height_of(core: &CpuSet) -> i32 {
    i32::try_from(core.len()).unwrap_or(0) * CELL.1 + 2 * CORE_PAD
}

fn core_size(group: &CacheGroup) -> (i32, i32) {
    (
        CELL.0 + 2 * CORE_PAD,
        group.cores.iter().map(height_of).max().unwrap_or(0),
    )
}

fn size(group: &CacheGroup) -> (i32, i32) {
    let (columns, core) = (columns(group), core_size(group));
    let rows = (i32::try_from(group.cores.len()).unwrap_or(0) + columns - 1) / columns;
    let w = columns * (core.0 + CORE_GAP) - CORE_GAP + 2 * GROUP_PAD;
    (
        w,
        rows * (core.1 + CORE_GAP) - CORE_GAP + 2 * GROUP_PAD + GROUP_HEAD,
    )
}

/// The width of a row of caches: as many as make the node about twice as wide as high.
fn widest_row(groups: &[CacheGroup]) -> i32 {
    let widest = groups.iter().map(|group| size(group).0).max().unwrap_or(0);
    let highest = groups.iter().map(|group| size(group).1).max().unwrap_or(0);
    let count = i32::try_from(groups.len()).unwrap_or(0);
    let row = |across: i32| across * (widest + GROUP_GAP) - GROUP_GAP;
    let is_wide = |across: &i32| {
        let down = (count + across - 1) / across;
        row(*across) >= 3 * down * highest / 2 || *across == count
    };
    (1..=count).find(is_wide).map_or(0, row)
}
