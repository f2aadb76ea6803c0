//! The picture of a machine as SVG. Text stays text, colours follow the viewer's light or dark scheme, and nothing is
//! shown by colour alone: each interface has a letter, each core its number. The same picture gives the same bytes.
//!
//! A queue is a line from its interface to a CPU, and a label in that CPU. Of many queues, only their number on each core is
//! shown, as a heat map.

use itertools::Itertools as _;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::draw::layout::{Layout, MARGIN, Rect, WIDEST, width};
use crate::draw::picture::{InterfacePicture, Picture, QueueMark, Scene, labels};
use crate::screen::nodes::size;
use nicpin::cpuset::CpuSet;

/// Above the scenes: the title.
const TITLE: i32 = 44;
/// Above each scene: its heading.
const HEADING: i32 = 34;
/// A sign of the legend, the line of text beside it, and where that begins.
const SIGN: i32 = 24;
const LINE: i32 = 16;
const WORDS: i32 = 48;
/// From one sign of a scale to the next.
const STEP: i32 = 42;

/// The number of interface colours. Further interfaces reuse them, with other letters.
const COLOURS: usize = 8;

/// The picture as an SVG document.
pub fn picture(picture: &Picture) -> String {
    let layout = Layout::new(picture);
    let pair = |first: &str, size: i32, then: &str| width(first, size) + width(then, 12) + 12;
    let headings = (picture.scenes.iter()).map(|scene| pair(scene.title, 16, &scene.score));
    let column = headings.fold(layout.width, i32::max);
    let beside = picture.scenes.len() == 2 && 2 * (column + MARGIN) <= WIDEST;
    let scenes = i32::try_from(picture.scenes.len()).unwrap_or(0);
    let (across, down) = if beside { (scenes, 1) } else { (1, scenes) };
    let title = pair(&picture.title, 18, &picture.origin);
    let inner = (across * (column + MARGIN) - MARGIN).max(title);
    let legend = legend(picture, inner - WORDS);
    let lines: i32 = legend.iter().map(|(_, words)| height(words)).sum();
    let scene_height = HEADING + layout.height + MARGIN;
    let (w, h) = (
        inner + 2 * MARGIN,
        TITLE + down * scene_height + lines + MARGIN,
    );
    let mut out = String::new();
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img">"#
    );
    let _ = writeln!(out, "<title>{}</title>", escaped(&picture.title));
    out.push_str(STYLE);
    let _ = writeln!(out, r#"<rect class="paper" width="{w}" height="{h}"/>"#);
    text_pair(
        &mut out,
        (MARGIN, 30),
        "title",
        &picture.title,
        &picture.origin,
    );
    let (mut x, mut y) = (MARGIN, TITLE);
    for scene in &picture.scenes {
        text_pair(&mut out, (x, y + 20), "heading", scene.title, &scene.score);
        let _ = writeln!(out, r#"<g transform="translate({x} {})">"#, y + HEADING);
        draw(&mut out, picture, scene, &layout);
        out.push_str("</g>\n");
        if beside {
            x += column + MARGIN;
        } else {
            y += scene_height;
        }
    }
    y = TITLE + down * scene_height;
    for (sign, words) in legend {
        let _ = writeln!(out, r#"<g transform="translate({MARGIN} {y})">{sign}"#);
        // The scale has five signs.
        let x = WORDS + if sign.starts_with("<g") { 5 * STEP } else { 0 };
        for (at, line) in (0_i32..).zip(&words) {
            text(&mut out, (x, 13 + at * LINE), "dim", line);
        }
        out.push_str("</g>\n");
        y += height(&words);
    }
    out + "</svg>\n"
}

/// The height of a sign of the legend with its lines of text.
fn height(words: &[String]) -> i32 {
    SIGN + LINE * (i32::try_from(words.len()).unwrap_or(1) - 1)
}

/// One scene, drawn from the bottom layer up.
fn draw(out: &mut String, picture: &Picture, scene: &Scene, layout: &Layout) {
    for (at, panel) in layout.panels.iter().enumerate() {
        rect(out, *panel, "panel", 8);
        let (name, more, neighbours) = heading(picture, at);
        text_pair(out, (panel.x + 12, panel.y + 19), "node", &name, &more);
        text(out, (panel.x + 12, panel.y + 35), "dim", neighbours);
    }
    for group in &layout.caches {
        rect(out, *group, "l3", 5);
        text(out, (group.x + 7, group.y + 11), "tiny", "L3");
    }
    let mut by_cpu: BTreeMap<u32, Vec<&QueueMark>> = BTreeMap::new();
    for place in &scene.places {
        by_cpu.entry(place.cpu).or_default().push(place);
    }
    // Of each queue: how many are on its core.
    let mut heat: BTreeMap<(usize, u32), usize> = BTreeMap::new();
    for (rect, cpus) in &layout.cores {
        let places = || (cpus.iter()).filter_map(|cpu| by_cpu.get(&cpu)).flatten();
        let is_remote = places().any(|place| place.remote);
        let queues: BTreeSet<_> = places().map(|place| (place.card, place.queue)).collect();
        core(out, *rect, picture.is_map.then_some(queues.len()));
        if picture.is_map && is_remote {
            self::rect(out, rect.within(2), "far", 3);
        }
        for queue in &queues {
            let most = heat.entry(*queue).or_default();
            *most = queues.len().max(*most);
        }
    }
    let (taking, free): (Vec<_>, Vec<_>) =
        (layout.cells.iter()).partition(|(cpu, _)| by_cpu.contains_key(cpu));
    for (cpu, rect) in free {
        cell(out, picture, *cpu, *rect, &[]);
    }
    // Above the CPUs that take nothing, and below those at which they end.
    for place in scene.places.iter().filter(|_| picture.lines) {
        line(out, layout, place);
    }
    for (cpu, rect) in taking {
        cell(
            out,
            picture,
            *cpu,
            *rect,
            by_cpu.get(cpu).map_or(&[], Vec::as_slice),
        );
    }
    for (&at, (rect, dots)) in &layout.chips {
        let Some(card) = picture.cards.get(at) else {
            continue;
        };
        chip(out, card, at, *rect);
        let colour = at % COLOURS;
        for (queue, (x, y)) in dots {
            let class = if picture.is_map {
                let queues = heat.get(&(at, *queue)).copied().unwrap_or(0);
                format!("h{} dot", level(queues))
            } else {
                format!("k{colour}")
            };
            let _ = writeln!(
                out,
                r#"<circle class="{class}" cx="{x}" cy="{y}" r="3.5"/>"#
            );
        }
    }
}

/// The colour of so many queues on a core.
fn level(queues: usize) -> usize {
    match queues {
        0..=2 => queues,
        3..=4 => 3,
        5..=8 => 4,
        9..=16 => 5,
        _ => 6,
    }
}

fn core(out: &mut String, place: Rect, queues: Option<usize>) {
    rect(out, place, "core", 4);
    let Some(queues) = queues else { return };
    let level = level(queues);
    rect(out, place.within(1), &format!("h{level}"), 3);
    let middle = (place.x + place.w / 2, place.y + place.h / 2 + 4);
    text(out, middle, &format!("count n{level}"), &queues.to_string());
}

/// A panel's name, more about its node, and what else is on it.
fn heading(picture: &Picture, at: usize) -> (String, String, &str) {
    let Some(node) = picture.nodes.get(at) else {
        return ("node unknown".to_owned(), String::new(), "");
    };
    let package = node.package.map(|package| format!("package {package}"));
    let memory = match node.memory_kib {
        Some(0) => Some("no memory".to_owned()),
        kib => kib.map(|_| size(kib)),
    };
    let no_cpus = node.groups.is_empty().then(|| "no CPUs".to_owned());
    let more: Vec<String> = [package, memory, no_cpus].into_iter().flatten().collect();
    (
        format!("node {}", node.id),
        more.join(", "),
        &node.neighbours,
    )
}

/// The line from a queue's dot to its CPU.
fn line(out: &mut String, layout: &Layout, place: &QueueMark) {
    let chip = layout.chips.get(&place.card);
    let (Some((_, dots)), Some(cell)) = (chip, layout.cells.get(&place.cpu)) else {
        return;
    };
    let Some((_, (x, y))) = dots.iter().find(|(queue, _)| *queue == place.queue) else {
        return;
    };
    let (to_x, to_y) = (cell.x + cell.w / 2, cell.y + cell.h);
    let middle = (*y + to_y) / 2;
    let class = if place.remote { "line remote" } else { "line" };
    let colour = place.card % COLOURS;
    let _ = writeln!(
        out,
        r#"<path class="{class} s{colour}" d="M{x} {y}C{x} {middle} {to_x} {middle} {to_x} {to_y}"/>"#
    );
}

fn cell(out: &mut String, picture: &Picture, cpu: u32, cell: Rect, places: &[&QueueMark]) {
    let is_excluded = picture.isolated.contains(cpu) || picture.exclusive.contains(cpu);
    let class = match (picture.is_map, is_excluded) {
        (true, true) => "cpu bare isolated",
        (true, false) => "cpu bare",
        (false, true) => "cpu isolated",
        (false, false) => "cpu",
    };
    let title = escaped(&cell_title(picture, cpu, places));
    let _ = write!(out, "<g><title>{title}</title>");
    rect(out, cell, class, 3);
    let cards: BTreeSet<usize> = places.iter().map(|place| place.card).collect();
    if !picture.is_map {
        let share = cell.w / i32::try_from(cards.len().max(1)).unwrap_or(1);
        for (at, card) in (0_i32..).zip(&cards) {
            // The next one covers the rest.
            let part = Rect {
                x: cell.x + at * share,
                w: cell.w - at * share,
                ..cell
            };
            rect(out, part, &format!("k{}", card % COLOURS), 3);
        }
    }
    if !picture.is_map {
        if places.iter().any(|place| place.remote) {
            rect(out, cell.within(1), "away", 2);
        }
        let (middle, on) = (
            cell.x + cell.w / 2,
            if cards.is_empty() { "" } else { " on" },
        );
        let number = format!("number{on}");
        text(out, (middle, cell.y + 12), &number, &cpu.to_string());
        text(
            out,
            (middle, cell.y + 24),
            "label on",
            &short(picture, places),
        );
    }
    out.push_str("</g>\n");
}

/// The queues of a CPU: `A3`, `A3,7`, `A3 B7`, or only how many if its cell has no room for that: `×9`.
fn short(picture: &Picture, places: &[&QueueMark]) -> String {
    /// Characters of a cell.
    const ROOM: usize = 5;
    let of = |same: &[&QueueMark]| {
        let card = same.first().and_then(|place| picture.cards.get(place.card));
        let key = card.map_or("", |card| card.key.as_str());
        format!("{key}{}", labels(same.iter().copied()).join(","))
    };
    let cards = places.chunk_by(|a, b| a.card == b.card);
    let all = cards.map(of).join(" ");
    if all.chars().count() <= ROOM {
        return all;
    }
    let queues = places.iter().map(|place| (place.card, place.queue));
    format!("\u{d7}{}", queues.collect::<BTreeSet<_>>().len())
}

/// The title of a CPU, which viewers show when the pointer is over it.
fn cell_title(picture: &Picture, cpu: u32, places: &[&QueueMark]) -> String {
    let has = |cpus: &CpuSet, words: &'static str| if cpus.contains(cpu) { words } else { "" };
    let mut words = format!(
        "CPU {cpu}{}{}",
        has(&picture.isolated, ", isolated or nohz_full"),
        has(&picture.exclusive, ", in an exclusive cpuset partition")
    );
    for same in places.chunk_by(|a, b| a.card == b.card) {
        if let Some(card) = same.first().and_then(|place| picture.cards.get(place.card)) {
            let queues = labels(same.iter().copied()).join(", ");
            let _ = write!(words, "; {} queues {queues}", card.name);
        }
    }
    words
}

fn chip(out: &mut String, card: &InterfacePicture, at: usize, r: Rect) {
    let colour = at % COLOURS;
    rect(out, r, &format!("chip s{colour}"), 5);
    let y = r.y + r.h - 24;
    let key = Rect {
        x: r.x + 7,
        y: y - 11,
        w: 10 + 9 * i32::try_from(card.key.len()).unwrap_or(1),
        h: 15,
    };
    rect(out, key, &format!("k{colour}"), 3);
    text(out, (key.x + 5, y), "key on", &card.key);
    let after = (key.x + key.w + 5, y);
    text_pair(out, after, "name", &card.name, &card.queues_text());
    text(out, (r.x + 7, y + 16), "dim", &card.what);
}

/// The signs with their meaning, in lines of this width.
fn legend(picture: &Picture, room: i32) -> Vec<(String, Vec<String>)> {
    let sign = |classes: &[&str], class: &str, word: &str| {
        let (x, y, w, h) = (0, 0, 36, 18);
        let mut sign = String::new();
        for class in classes {
            rect(&mut sign, Rect { x, y, w, h }, class, 3);
        }
        text(&mut sign, (18, 13), class, word);
        sign
    };
    let mut legend = Vec::new();
    if picture.is_map {
        let scale = (0_i32..)
            .zip(["1", "2", "3-4", "5-8", "9-16", "17+"])
            .map(|(at, queues)| {
                let level = format!("h{}", at + 1);
                let sign = sign(&["core", &level], &format!("count n{}", at + 1), queues);
                format!(r#"<g transform="translate({} 0)">{sign}</g>"#, at * STEP)
            });
        let words = "queues on a core, in one of these colours";
        legend.push((scale.collect(), words.to_owned()));
        let dot = |at| {
            format!(
                r#"<circle class="h{at} dot" cx="{}" cy="9" r="3.5"/>"#,
                9 * at - 5
            )
        };
        let words = "the queues of an interface, each in the colour of the core that takes it; point at a CPU to see which";
        legend.push(((1..=4).map(dot).collect(), words.to_owned()));
    } else {
        let words = "a CPU that takes queue 3 of interface A (r, t: only its receive or transmit vector; \u{d7}6: six \
             queues, point at the CPU to see which); CPUs in one frame are one core, those in a box marked L3 share that cache";
        legend.push((sign(&["k0"], "label on", "A3"), words.to_owned()));
        if picture.lines {
            let line =
                r#"<path class="line s0" d="M0 5H36"/><path class="line remote s0" d="M0 13H36"/>"#;
            let words = "from a queue to the CPU that takes it; dashed: on another node";
            legend.push((line.to_owned(), words.to_owned()));
        }
    }
    let away = if picture.is_map {
        ["core", "far"]
    } else {
        ["k0", "away"]
    };
    let words = "takes a queue of an interface on another node";
    legend.push((sign(&away, "", ""), words.to_owned()));
    let words =
        "isolated, nohz_full or in an exclusive cpuset partition; point at the CPU to see which";
    legend.push((sign(&["cpu isolated"], "", ""), words.to_owned()));
    let folded = legend
        .into_iter()
        .map(|(sign, words)| (sign, fold(&words, room)));
    folded.collect()
}

/// A text in lines of this width.
fn fold(text: &str, room: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line, 12) + width(word, 12) + 8 <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn rect(out: &mut String, rect: Rect, class: &str, radius: i32) {
    let Rect { x, y, w, h } = rect;
    let _ = writeln!(
        out,
        r#"<rect class="{class}" x="{x}" y="{y}" width="{w}" height="{h}" rx="{radius}"/>"#
    );
}

/// A text, and a second one after it in a weaker colour.
fn text_pair(out: &mut String, (x, y): (i32, i32), class: &str, first: &str, then: &str) {
    let (first, then) = (escaped(first), escaped(then));
    let _ = writeln!(
        out,
        r#"<text class="{class}" x="{x}" y="{y}">{first} <tspan class="dim" dx="4">{then}</tspan></text>"#
    );
}

fn text(out: &mut String, (x, y): (i32, i32), class: &str, text: &str) {
    if !text.is_empty() {
        let text = escaped(text);
        let _ = writeln!(
            out,
            r#"<text class="{class}" x="{x}" y="{y}">{text}</text>"#
        );
    }
}

/// Escapes text for XML: the name of an interface may hold nearly any character.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 cannot represent these.
            '\0'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Colours and fonts, in the viewer's light or dark scheme. Light is the default. For interface colour N, `kN` is a filled
/// area with white text, `sN` a line; for level N of the heat map, `hN` is an area and `nN` the number on it.
const STYLE: &str = "<style>
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
.bare { fill: none; stroke: none; pointer-events: all }
.isolated { fill: #e6eaef; stroke: #57606a; stroke-dasharray: 3 2 }
.bare.isolated { fill: none }
.h0 { fill: #fff } .h1 { fill: #dbeafe } .h2 { fill: #7cb7f8 } .h3 { fill: #fcd34d }
.dot { stroke: #57606a; stroke-width: 0.7 }
.h4 { fill: #fb923c } .h5 { fill: #dc2626 } .h6 { fill: #7f1d1d }
.count { font-size: 12px; font-weight: bold; text-anchor: middle }
text.count { fill: #1f2328 }
text.n0 { font-weight: normal; fill: #57606a } text.n5, text.n6 { fill: #fff }
.chip { fill: #fff; stroke-width: 1.5 }
.line { fill: none; stroke-width: 1.5; stroke-linejoin: round }
.remote { stroke-dasharray: 5 3 }
.away { fill: none; stroke: #ffd33d; stroke-width: 2.5 }
.far { fill: none; stroke: #8250df; stroke-width: 3; stroke-dasharray: 5 3 }
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
.bare.isolated { fill: none }
.h0 { fill: #0d1117 }
text.n0 { fill: #9198a1 }
.chip { fill: #0d1117 }
.s0 { stroke: #58a6ff } .s1 { stroke: #f0883e } .s2 { stroke: #3fb950 } .s3 { stroke: #bc8cff }
.s4 { stroke: #f778ba } .s5 { stroke: #39c5dd } .s6 { stroke: #d4a72c } .s7 { stroke: #9198a1 }
}
</style>
";
