//! The picture of a machine as SVG. Text stays text, colours follow the viewer's light or dark scheme, and nothing is
//! shown by colour alone: each interface has a letter, each core its number. The same picture gives the same bytes.
//!
//! A queue is a line from its interface to a CPU, and a label in that CPU. Of many queues, only their number on each
//! core is shown, as a heat map.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;

use crate::draw::{
    CELL, CORE, CORE_GAP, GAP, GROUP_HEAD, GROUP_PAD, Mark, Panel, Picture, core_height, grid,
    labels, widest_row,
};
use crate::screen::{enclose, join_nonempty, text_if};
use nicpin::cpuset::{CpuSet, Inserted as _};
use nicpin::machine::QueueId;

/// Space around everything, and between panels.
const MARGIN: usize = 20;
/// Maximum width of the picture, and of a row of panels unless a single panel is wider.
const WIDEST: usize = 1720;
/// Minimum width of the picture, for its legend, and of a panel's content.
const NARROWEST: (usize, usize) = (680, 260);
/// Above the scenes, and above each.
const TITLE: usize = 44;
const HEADING: usize = 34;
/// Around the content of a panel, and its two lines of text.
const PANEL_PAD: usize = 12;
const PANEL_HEAD: usize = 44;
/// Above the first interface, where lines turn.
const TURN: usize = 48;
/// An interface without its dots, and the least and the greatest distance between the centres of two.
const CHIP: usize = 42;
const DOTS: (usize, usize) = (11, 44);
/// A line of the legend, its text after a sign, and from one sign of a scale to the next.
const LINE: usize = 22;
const WORDS: usize = 48;
const STEP: usize = 42;
/// Further interfaces reuse the colours, with other letters.
const COLOURS: usize = 8;

/// Measures two texts, the first in a font of this size, in the widest of the fonts (`DejaVu` Sans).
fn width(first: &str, size: usize, then: &str) -> usize {
    (first.chars().count() * size + then.chars().count() * 12) * 62 / 100 + 12
}

impl Picture {
    pub fn svg(&self) -> String {
        let scenes = self
            .scenes
            .iter()
            .map(|scene| (scene, Drawing::new(self, &scene.marks)))
            .collect_vec();
        let mut size = (0, 0);
        for (scene, drawing) in &scenes {
            size.0 = size
                .0
                .max(drawing.width.max(width(scene.title, 16, &scene.score)) + MARGIN);
            size.1 = HEADING + drawing.height + MARGIN;
        }
        let is_beside = scenes.len() == 2 && 2 * size.0 <= WIDEST;
        let (right, down) = if is_beside { (size.0, 0) } else { (0, size.1) };
        let others = scenes.len() - 1;
        let legend = self.legend();
        let title = width(&self.title, 18, &self.origin).max(NARROWEST.0) + MARGIN;
        let w = title.max(others * right + size.0) + MARGIN;
        let below = TITLE + others * down + size.1;
        let h = below + legend.len() * LINE + MARGIN;
        let title = escaped(&self.title);
        let mut out = Svg(format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img">
<title>{title}</title>
<style>
{STYLE}</style>
<rect class="paper" width="{w}" height="{h}"/>
"#
        ));
        out.text((MARGIN, 30), "title", &self.title, &self.origin);
        for (at, (scene, drawing)) in scenes.iter().enumerate() {
            let (x, y) = (MARGIN + at * right, TITLE + at * down);
            out.text((x, y + 20), "heading", scene.title, &scene.score);
            out.group((x, y + HEADING), "\n");
            for layer in [&drawing.panels, &drawing.below, &drawing.above] {
                out.0 += &layer.0;
            }
            out.0 += "</g>\n";
        }
        for (at, (sign, words)) in legend.iter().enumerate() {
            out.group((MARGIN, below + at * LINE), sign);
            // The scale has five signs more.
            let x = WORDS + if sign.starts_with("<g") { 5 * STEP } else { 0 };
            out.text((x, 13), "dim", words, "");
            out.0 += "</g>\n";
        }
        out.0 + "</svg>\n"
    }

    fn legend(&self) -> Vec<(String, &'static str)> {
        let sign = |class: &str, on: &str, word: &str| {
            let mut sign = Svg::default();
            sign.rect([0, 0, 36, 18], class, 3);
            sign.text((18, 13), on, word, "");
            sign.0
        };
        let bare = |class| sign(class, "", "");
        let (mut scale, mut dots) = (Svg::default(), Svg::default());
        for (at, queues) in (1..).zip(["1", "2", "3-4", "5-8", "9-16", "17+"]) {
            let level = sign(&format!("h{at}"), &format!("count n{at}"), queues);
            scale.group((at * STEP - STEP, 0), &(level + "</g>"));
            dots.dot((7 * at - 4, 9), &format!("h{at} dot"));
        }
        let line =
            r#"<path class="line s c0" d="M0 5H36"/><path class="line remote s c0" d="M0 13H36"/>"#;
        let remote = bare(if self.is_map { "core" } else { "k c0" });
        let remote = remote + &bare(if self.is_map { "far" } else { "away" });
        let mut legend = if self.is_map {
            vec![
                (scale.0, "queues on a core, in one of these colours"),
                (
                    dots.0,
                    "the queues of an interface, each in the colour of the core that takes it;",
                ),
                (String::new(), "point at a CPU to see which"),
            ]
        } else {
            vec![
                (
                    sign("k c0", "label on", "A3"),
                    "a CPU that takes queue 3 of interface A (r, t: only its receive or transmit IRQ;",
                ),
                (
                    String::new(),
                    "\u{d7}6: six queues, point at the CPU to see which);",
                ),
                (
                    String::new(),
                    "CPUs in one frame are one core, those in a box share a cache",
                ),
            ]
        };
        if self.lines {
            let words = "from a queue to the CPU that takes it; dashed: on another node";
            legend.push((line.to_owned(), words));
        }
        legend.push((remote, "takes a queue of an interface on another node"));
        let mut queues = self.cards.iter().flat_map(|card| &card.queues);
        if queues.any(|queue| matches!(queue, QueueId::OfIrq(_))) {
            legend.push((String::new(), "i60: IRQ 60, of a queue that is not known"));
        }
        legend.push((
            bare("cpu isolated"),
            "isolated, nohz_full or in an exclusive cpuset partition; point at the CPU to see which",
        ));
        legend
    }
}

struct Drawing<'a> {
    picture: &'a Picture,
    marks: &'a BTreeSet<Mark>,
    width: usize,
    height: usize,
    panels: Svg,
    /// The lines and what is below them, and what is above.
    below: Svg,
    above: Svg,
    /// The middle of the bottom of each CPU, where lines end.
    ends: BTreeMap<u32, (usize, usize)>,
    /// For each queue, the most queues on a core that takes it.
    heat: BTreeMap<(usize, QueueId), usize>,
}

impl<'a> Drawing<'a> {
    fn new(picture: &'a Picture, marks: &'a BTreeSet<Mark>) -> Self {
        let mut drawing = Self {
            picture,
            marks,
            width: 0,
            height: 0,
            panels: Svg::default(),
            below: Svg::default(),
            above: Svg::default(),
            ends: BTreeMap::new(),
            heat: BTreeMap::new(),
        };
        let panels = &picture.panels;
        let mut inner = NARROWEST.1;
        for panel in panels {
            inner = inner
                .max(widest_row(panel))
                .max(width("", 0, &panel.neighbours));
        }
        for card in &picture.cards {
            let name = format!("{} {} ", card.key, card.name);
            let text = width(&name, 13, &card.size).max(width("", 0, &card.what));
            inner = inner.max(text + 20);
        }
        let step = inner + 2 * PANEL_PAD + MARGIN;
        // As few rows as have room for them, filled evenly.
        let count = panels.len().max(1);
        let most = ((WIDEST + MARGIN) / step).clamp(1, count);
        let in_row = count.div_ceil(count.div_ceil(most));
        drawing.width = in_row * step - MARGIN;
        // CPUs first: lines and the colours of queues depend on all of them.
        let (mut chips, mut y) = (Vec::new(), 0);
        for row in panels.chunks(in_row) {
            for (at, panel) in row.iter().enumerate() {
                let x = at * step + PANEL_PAD;
                let mut bottom = drawing.cores(panel, (x, y), inner);
                let mut gap = if picture.lines { TURN } else { GAP };
                for &card in &panel.cards {
                    let (_, rows, _) = dots(picture.cards[card].queues.len(), inner);
                    let h = CHIP + rows * DOTS.0;
                    chips.push((card, [x, bottom + gap, inner, h]));
                    bottom += gap + h;
                    gap = GAP;
                }
                drawing.height = drawing.height.max(bottom + PANEL_PAD);
            }
            for at in 0..row.len() {
                let place = [at * step, y, step - MARGIN, drawing.height - y];
                drawing.panels.rect(place, "panel", 8);
            }
            y = drawing.height + MARGIN;
        }
        for (card, place) in chips {
            drawing.chip(card, place);
        }
        drawing
    }

    fn cores(&mut self, panel: &Panel, (left, top): (usize, usize), inner: usize) -> usize {
        self.below
            .text((left, top + 19), "node", &panel.name, &panel.about);
        self.below
            .text((left, top + 35), "dim", &panel.neighbours, "");
        let (mut x, mut y, mut bottom) = (left, top + PANEL_HEAD, top + PANEL_HEAD);
        for (is_l3, cores) in &panel.groups {
            let (columns, high, w, h) = grid(cores);
            if x > left && x + w > left + inner {
                (x, y) = (left, bottom + GAP);
            }
            if *is_l3 {
                self.below.rect([x, y, w, h], "l3", 5);
                self.below.text((x + 7, y + 11), "tiny", "cache", "");
            }
            for (at, core) in cores.iter().enumerate() {
                let across = GROUP_PAD + at % columns * (CORE + CORE_GAP);
                self.core(
                    core,
                    x + across,
                    y + GROUP_PAD + GROUP_HEAD + at / columns * high,
                );
            }
            x += w + GAP;
            bottom = bottom.max(y + h);
        }
        bottom
    }

    fn core(&mut self, cpus: &CpuSet, x: usize, y: usize) {
        let place = [x, y, CORE, core_height(cpus)];
        self.below.rect(place, "core", 4);
        let marks = self.marks.iter().filter(|mark| cpus.contains(mark.cpu));
        let queues: BTreeSet<_> = marks.clone().map(|mark| (mark.card, mark.queue)).inserted();
        let many = queues.len();
        if self.picture.is_map {
            let level = level(many);
            self.below.rect(inset(place, 1), &format!("h{level}"), 3);
            let middle = (x + CORE / 2, y + place[3] / 2 + 4);
            self.below
                .text(middle, &format!("count n{level}"), &many.to_string(), "");
            if marks.clone().any(|mark| mark.remote) {
                self.below.rect(inset(place, 2), "far", 3);
            }
        }
        for queue in queues {
            let most = self.heat.entry(queue).or_default();
            *most = many.max(*most);
        }
        for (thread, cpu) in cpus.iter().enumerate() {
            self.cell(cpu, x + 2, y + 2 + thread * CELL.1);
        }
    }

    fn cell(&mut self, cpu: u32, x: usize, y: usize) {
        let (picture, (w, h)) = (self.picture, CELL);
        self.ends.insert(cpu, (x + w / 2, y + h));
        let marks = self
            .marks
            .iter()
            .filter(|mark| mark.cpu == cpu)
            .collect_vec();
        let out = if marks.is_empty() {
            &mut self.below
        } else {
            &mut self.above
        };
        let isolated = picture.isolated.contains(cpu);
        let exclusive = picture.exclusive.contains(cpu);
        let mut title = format!("CPU {cpu}");
        title += text_if(isolated, ", isolated or nohz_full");
        title += text_if(exclusive, ", in an exclusive cpuset partition");
        let cards = marks
            .chunk_by(|a, b| a.card == b.card)
            .map(|marks| (marks[0].card, labels(marks)))
            .collect_vec();
        for (card, queues) in &cards {
            let name = &picture.cards[*card].name;
            title += &format!("; {name} queues {}", queues.join(", "));
        }
        out.0 += &format!("<g><title>{}</title>", escaped(&title));
        let excluded = text_if(isolated || exclusive, "isolated");
        let class = join_nonempty(" ", ["cpu", text_if(picture.is_map, "bare"), excluded]);
        out.rect([x, y, w, h], &class, 3);
        if !picture.is_map {
            let share = w / cards.len().max(1);
            for (at, (card, _)) in cards.iter().enumerate() {
                // The next one covers the rest.
                let part = [x + at * share, y, w - at * share, h];
                out.rect(part, &format!("k c{}", card % COLOURS), 3);
            }
            if marks.iter().any(|mark| mark.remote) {
                out.rect(inset([x, y, w, h], 1), "away", 2);
            }
            out.text(
                (x + w / 2, y + 12),
                &join_nonempty(" ", ["number", text_if(!cards.is_empty(), "on")]),
                &cpu.to_string(),
                "",
            );
            // `A3`, `A3,7`, `A3 B7`, or only how many if there is no room for that.
            let mut label = cards
                .iter()
                .map(|(card, of)| format!("{}{}", picture.cards[*card].key, of.join(",")))
                .join(" ");
            if label.len() > 5 {
                let queues: usize = cards.iter().map(|(_, queues)| queues.len()).sum();
                label = format!("\u{d7}{queues}");
            }
            out.text((x + w / 2, y + 24), "label on", &label, "");
        }
        out.0 += "</g>\n";
    }

    fn chip(&mut self, at: usize, place: [usize; 4]) {
        let (picture, [x, y, w, h]) = (self.picture, place);
        let (card, colour) = (&picture.cards[at], at % COLOURS);
        let key = 10 + 9 * card.key.len();
        let (out, base) = (&mut self.above, y + h - 24);
        out.rect(place, &format!("chip s c{colour}"), 5);
        out.rect([x + 7, base - 11, key, 15], &format!("k c{colour}"), 3);
        out.text((x + 12, base), "key on", &card.key, "");
        out.text((x + key + 12, base), "name", &card.name, &card.size);
        out.text((x + 7, base + 16), "dim", &card.what, "");
        let (in_row, _, step) = dots(card.queues.len(), w);
        for (dot, &queue) in card.queues.iter().enumerate() {
            let x = x + GROUP_PAD + step / 2 + dot % in_row * step;
            let y = y + GROUP_PAD + dot / in_row * DOTS.0;
            let heat = self.heat.get(&(at, queue)).copied().unwrap_or(0);
            let class = if picture.is_map {
                format!("h{} dot", level(heat))
            } else {
                format!("k c{colour}")
            };
            self.above.dot((x, y), &class);
            let own = self.marks.iter();
            let own = own.filter(|mark| picture.lines && (mark.card, mark.queue) == (at, queue));
            for mark in own {
                let Some((to_x, to_y)) = self.ends.get(&mark.cpu) else {
                    continue;
                };
                let (middle, remote) = ((y + to_y) / 2, text_if(mark.remote, " remote"));
                self.below.0 += &format!(
                    r#"<path class="line s c{colour}{remote}" d="M{x} {y}C{x} {middle} {to_x} {middle} {to_x} {to_y}"/>
"#
                );
            }
        }
    }
}

/// The dots in a row, the rows, and the distance between dots.
fn dots(count: usize, width: usize) -> (usize, usize, usize) {
    let room = width - 2 * GROUP_PAD;
    let in_row = count.clamp(1, room / DOTS.0);
    (in_row, count.div_ceil(in_row), (room / in_row).min(DOTS.1))
}

fn level(queues: usize) -> usize {
    [0, 1, 2, 4, 8, 16]
        .iter()
        .filter(|&&most| queues > most)
        .count()
}

fn inset([x, y, w, h]: [usize; 4], by: usize) -> [usize; 4] {
    [x + by, y + by, w - 2 * by, h - 2 * by]
}

#[derive(Default)]
struct Svg(String);

impl Svg {
    fn rect(&mut self, [x, y, w, h]: [usize; 4], class: &str, radius: usize) {
        self.0 += &format!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{w}" height="{h}" rx="{radius}"/>
"#
        );
    }

    fn dot(&mut self, (x, y): (usize, usize), class: &str) {
        self.0 += &format!(
            r#"<circle class="{class}" cx="{x}" cy="{y}" r="3.5"/>
"#
        );
    }

    fn group(&mut self, (x, y): (usize, usize), then: &str) {
        self.0 += &format!(r#"<g transform="translate({x} {y})">{then}"#);
    }

    fn text(&mut self, (x, y): (usize, usize), class: &str, first: &str, then: &str) {
        if first.is_empty() {
            return;
        }
        let first = escaped(first);
        let then = enclose(
            r#" <tspan class="dim" dx="4">"#,
            [escaped(then)],
            "</tspan>",
        );
        self.0 += &format!(
            r#"<text class="{class}" x="{x}" y="{y}">{first}{then}</text>
"#
        );
    }
}

/// The name of an interface may hold nearly any character.
fn escaped(text: &str) -> String {
    // XML 1.0 cannot represent these.
    let is_odd = |c: char| c.is_ascii_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    text.replace(is_odd, "\u{fffd}")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Colours and fonts, in the viewer's light or dark scheme (default: light). `cN` is the colour of interface N, `k` an
/// area in it with white text, `s` a line; for level N of the heat map, `hN` is an area and `nN` the number on it.
const STYLE: &str = include_str!("style.css");
