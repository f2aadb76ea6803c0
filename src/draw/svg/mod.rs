//! The picture of a machine as SVG. Text stays text, colours follow the viewer's light or dark scheme, and nothing is
//! shown by colour alone: each interface has a letter. The same picture gives the same bytes.
//!
//! A queue is a line from its interface to a CPU, and a label in that CPU.

mod layout;
mod route;
mod style;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::draw::picture::{InterfacePicture, Picture, QueueMark, Scene, labels};
use crate::screen::nodes::size;
use layout::{Layout, MARGIN, Rect};
use nicpin::machine::wording::count;
use style::COLOURS;

/// Above the first scene: the title.
const TITLE: i32 = 44;
/// Above each scene: its heading.
const HEADING: i32 = 34;
/// A line of the legend, below the last scene.
const LEGEND: i32 = 24;

/// With more queues than this, lines are thinner.
const MANY: usize = 96;

/// The picture as an SVG document.
pub fn picture(picture: &Picture) -> String {
    let layout = Layout::new(picture);
    let legend = legend(picture);
    let scenes = i32::try_from(picture.scenes.len()).unwrap_or(0);
    let lines = i32::try_from(legend.len()).unwrap_or(0);
    let width = layout.width.max(560) + 2 * MARGIN;
    let height = TITLE + scenes * (HEADING + layout.height + MARGIN) + lines * LEGEND + MARGIN;
    let mut out = String::new();
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">"#
    );
    let _ = writeln!(out, "<title>{}</title>", escaped(&picture.title));
    out.push_str(style::STYLE);
    let _ = writeln!(
        out,
        r#"<rect class="paper" width="{width}" height="{height}"/>"#
    );
    text_pair(
        &mut out,
        (MARGIN, 30),
        "title",
        &picture.title,
        &picture.origin,
    );
    let mut y = TITLE;
    for scene in &picture.scenes {
        text_pair(
            &mut out,
            (MARGIN, y + 20),
            "heading",
            scene.title,
            &scene.score,
        );
        y += HEADING;
        let _ = writeln!(out, r#"<g transform="translate({MARGIN} {y})">"#);
        draw(&mut out, picture, scene, &layout);
        out.push_str("</g>\n");
        y += layout.height + MARGIN;
    }
    for (sign, words) in legend {
        let _ = writeln!(out, r#"<g transform="translate({MARGIN} {y})">{sign}"#);
        text(&mut out, (48, 13), "dim", &words);
        out.push_str("</g>\n");
        y += LEGEND;
    }
    out + "</svg>\n"
}

/// One scene, drawn from the bottom layer up.
fn draw(out: &mut String, picture: &Picture, scene: &Scene, layout: &Layout) {
    for (at, panel) in layout.panels.iter().enumerate() {
        rect(out, panel.rect, "panel", 8);
        let (name, more) = heading(picture, at);
        text_pair(
            out,
            (panel.rect.x + 12, panel.rect.y + 19),
            "node",
            &name,
            &more,
        );
        if let Some(node) = picture
            .nodes
            .get(at)
            .filter(|node| !node.neighbours.is_empty())
        {
            text(
                out,
                (panel.rect.x + 12, panel.rect.y + 35),
                "dim",
                &node.neighbours,
            );
        }
    }
    for (group, _) in layout.groups.iter().filter(|(_, is_l3)| *is_l3) {
        rect(out, *group, "l3", 5);
        text(out, (group.x + 7, group.y + 11), "tiny", "L3");
    }
    for core in &layout.cores {
        rect(out, *core, "core", 4);
    }
    let by_cpu = by_cpu(scene);
    // Remote lines are below all CPUs, local ones only below the CPUs that they may end at.
    let lines = |remote: bool| {
        scene
            .places
            .iter()
            .filter(move |place| picture.lines && place.remote == remote)
    };
    lines(true).for_each(|place| line(out, layout, place));
    for (&cpu, (cell, _)) in layout
        .cells
        .iter()
        .filter(|(cpu, _)| !by_cpu.contains_key(cpu))
    {
        self::cell(out, picture, cpu, *cell, &[]);
    }
    lines(false).for_each(|place| line(out, layout, place));
    for (&cpu, places) in &by_cpu {
        let Some((cell, _)) = layout.cells.get(&cpu) else {
            continue;
        };
        self::cell(out, picture, cpu, *cell, places);
    }
    for (&at, chip) in &layout.chips {
        let Some(card) = picture.cards.get(at) else {
            continue;
        };
        self::chip(out, card, at, chip);
    }
}

/// A panel's name, and more about its node.
fn heading(picture: &Picture, at: usize) -> (String, String) {
    let Some(node) = picture.nodes.get(at) else {
        return ("node unknown".to_owned(), String::new());
    };
    let package = node.package.map(|package| format!("package {package}"));
    let memory = match node.memory_kib {
        Some(0) => Some("no memory".to_owned()),
        kib => kib.map(|_| size(kib)),
    };
    let no_cpus = node.groups.is_empty().then(|| "no CPUs".to_owned());
    let more: Vec<String> = [package, memory, no_cpus].into_iter().flatten().collect();
    (format!("node {}", node.id), more.join(", "))
}

/// The line from a queue's dot to its CPU.
fn line(out: &mut String, layout: &Layout, place: &QueueMark) {
    let Some(chip) = layout.chips.get(&place.card) else {
        return;
    };
    let (Some(&dot), Some(&cpu)) = (chip.dots.get(&place.queue), layout.cells.get(&place.cpu))
    else {
        return;
    };
    let class = match (
        place.remote,
        layout.chips.values().map(|chip| chip.dots.len()).sum(),
    ) {
        (true, 0..=MANY) => "line remote",
        (true, _) => "line remote thin",
        (false, 0..=MANY) => "line",
        (false, _) => "line thin",
    };
    let (colour, path) = (
        place.card % COLOURS,
        route::path(layout, chip, place.card, dot, cpu),
    );
    let _ = writeln!(out, r#"<path class="{class} s{colour}" d="{path}"/>"#);
}

fn by_cpu(scene: &Scene) -> BTreeMap<u32, Vec<&QueueMark>> {
    let mut by_cpu: BTreeMap<u32, Vec<&QueueMark>> = BTreeMap::new();
    for place in &scene.places {
        by_cpu.entry(place.cpu).or_default().push(place);
    }
    by_cpu
}

/// The interfaces of these queues.
fn cards_of(places: &[&QueueMark]) -> Vec<usize> {
    let mut cards: Vec<usize> = places.iter().map(|place| place.card).collect();
    cards.dedup();
    cards
}

fn cell(out: &mut String, picture: &Picture, cpu: u32, cell: Rect, places: &[&QueueMark]) {
    let kept_free = picture.kept_free.contains(cpu) || picture.exclusive.contains(cpu);
    let cards = cards_of(places);
    out.push_str("<g>");
    let _ = write!(
        out,
        "<title>{}</title>",
        escaped(&cell_title(picture, cpu, places))
    );
    rect(out, cell, if kept_free { "cpu isolated" } else { "cpu" }, 3);
    let share = cell.w / i32::try_from(cards.len().max(1)).unwrap_or(1);
    for (at, card) in cards.iter().enumerate() {
        let x = i32::try_from(at).unwrap_or(0) * share;
        // The last one takes the rest of the width.
        let w = if at + 1 == cards.len() {
            cell.w - x
        } else {
            share
        };
        let part = Rect {
            x: cell.x + x,
            w,
            ..cell
        };
        rect(
            out,
            part,
            &format!("k{}", card % COLOURS),
            if cards.len() == 1 { 3 } else { 0 },
        );
    }
    if places.iter().any(|place| place.remote) {
        rect(
            out,
            Rect {
                x: cell.x + 1,
                y: cell.y + 1,
                w: cell.w - 2,
                h: cell.h - 2,
            },
            "away",
            2,
        );
    }
    let middle = cell.x + cell.w / 2;
    let number = if cards.is_empty() {
        "number"
    } else {
        "number on"
    };
    text(out, (middle, cell.y + 12), number, &cpu.to_string());
    if !cards.is_empty() {
        text(
            out,
            (middle, cell.y + 24),
            "label on",
            &short(picture, places),
        );
    }
    out.push_str("</g>\n");
}

/// The queues of a CPU as far as its cell has room for: `A3`, `A3,7`, `A3 B7`, `A×4`, `ABC`, `9 if`.
fn short(picture: &Picture, places: &[&QueueMark]) -> String {
    /// Five digits, each of which is four units wide.
    const ROOM: usize = 20;
    let width = |letter: char| match letter {
        'A'..='Z' => 5,
        ' ' | ',' => 2,
        _ => 4,
    };
    let cards = cards_of(places);
    let key = |card: &usize| {
        picture
            .cards
            .get(*card)
            .map_or("", |card| card.key.as_str())
    };
    let of = |card: usize| {
        labels(
            places
                .iter()
                .filter(move |place| place.card == card)
                .copied(),
        )
    };
    let all = || {
        let words = cards
            .iter()
            .map(|card| format!("{}{}", key(card), of(*card).join(",")));
        words.collect::<Vec<_>>().join(" ")
    };
    let counted = || match cards.as_slice() {
        [card] => format!("{}\u{d7}{}", key(card), of(*card).len()),
        cards => cards.iter().map(key).collect(),
    };
    let fits = |text: &String| text.chars().map(width).sum::<usize>() <= ROOM;
    [all(), counted()]
        .into_iter()
        .find(fits)
        .unwrap_or_else(|| format!("{} if", cards.len()))
}

/// The title of a CPU, which viewers show when the pointer is over it.
fn cell_title(picture: &Picture, cpu: u32, places: &[&QueueMark]) -> String {
    let mut words = format!("CPU {cpu}");
    if picture.kept_free.contains(cpu) {
        words.push_str(", isolated or nohz_full");
    }
    if picture.exclusive.contains(cpu) {
        words.push_str(", in an exclusive cpuset partition");
    }
    for same in places.chunk_by(|a, b| a.card == b.card) {
        let Some(card) = same.first().and_then(|place| picture.cards.get(place.card)) else {
            continue;
        };
        words.push_str(&format!(
            "; {} queues {}",
            card.name,
            labels(same.iter().copied()).join(", ")
        ));
    }
    words
}

fn chip(out: &mut String, card: &InterfacePicture, at: usize, chip: &layout::Chip) {
    let (colour, r) = (at % COLOURS, chip.rect);
    rect(out, r, &format!("chip s{colour}"), 5);
    for &(x, y) in chip.dots.values() {
        let _ = writeln!(
            out,
            r#"<circle class="k{colour}" cx="{x}" cy="{y}" r="3.5"/>"#
        );
    }
    let y = r.y + r.h - 24;
    rect(
        out,
        Rect {
            x: r.x + 7,
            y: y - 11,
            w: 8 + 8 * i32::try_from(card.key.len()).unwrap_or(1),
            h: 15,
        },
        &format!("k{colour}"),
        3,
    );
    text(out, (r.x + 11, y), "key on", &card.key);
    let queues = match card.queues.len() {
        0 => "no queue with a vector".to_owned(),
        queues => count(queues, "queue"),
    };
    let after = r.x + 20 + 8 * i32::try_from(card.key.len()).unwrap_or(1);
    text_pair(out, (after, y), "name", &card.name, &queues);
    text(out, (r.x + 7, y + 16), "dim", &card.what);
}

/// The signs that the picture holds, with their meaning.
fn legend(picture: &Picture) -> Vec<(String, String)> {
    let all = || picture.scenes.iter().flat_map(|scene| &scene.places);
    let cell = Rect {
        x: 0,
        y: 0,
        w: 36,
        h: 18,
    };
    let sign = |classes: &[&str], word: &str| {
        let mut sign = String::new();
        for class in classes {
            rect(&mut sign, cell, class, 3);
        }
        text(&mut sign, (18, 13), "label on", word);
        sign
    };
    let line = |class: &str| format!(r#"<path class="line {class} s0" d="M0 9H36"/>"#);
    let mut legend = vec![(
        sign(&["k0"], "A3"),
        "a CPU that takes queue 3 of interface A; CPUs in one frame are one core, those in a box marked L3 share \
         that cache"
            .to_owned(),
    )];
    if picture.lines && all().next().is_some() {
        let dot = r#"<circle class="k0" cx="4" cy="9" r="3.5"/>"#;
        legend.push((
            line("") + dot,
            "from a queue of an interface to the CPU that takes it".to_owned(),
        ));
    }
    let cells = picture
        .scenes
        .iter()
        .flat_map(|scene| by_cpu(scene).into_values());
    let words: Vec<String> = cells.map(|places| short(picture, &places)).collect();
    if words.iter().any(|word| word.contains(['r', 't'])) {
        legend.push((
            sign(&["k0"], "A3r"),
            "only its receive vector; t: only its transmit vector".to_owned(),
        ));
    }
    if words.iter().any(|word| word.contains(',')) {
        legend.push((
            sign(&["k0"], "A3,7"),
            "queues 3 and 7 of interface A".to_owned(),
        ));
    }
    if words.iter().any(|word| word.ends_with("if")) {
        let words = "queues of nine interfaces; point at the CPU to see which";
        legend.push((sign(&["k0"], "9 if"), words.to_owned()));
    }
    if words.iter().any(|word| word.contains('\u{d7}')) {
        let words = "two queues of interface A; point at the CPU to see which";
        legend.push((sign(&["k0"], "A\u{d7}2"), words.to_owned()));
    }
    if words
        .iter()
        .any(|word| word.chars().all(|c| c.is_ascii_uppercase()))
    {
        legend.push((
            sign(&["k0"], "AB"),
            "queues of interfaces A and B; point at the CPU to see which".to_owned(),
        ));
    }
    if all().any(|place| place.remote) {
        legend.push((
            sign(&["k0", "away"], "A3"),
            "takes a queue of an interface on another node".to_owned(),
        ));
        if picture.lines {
            legend.push((
                line("remote"),
                "from a queue to a CPU of another node".to_owned(),
            ));
        }
    }
    let words = match (picture.kept_free.is_empty(), picture.exclusive.is_empty()) {
        (true, true) => return legend,
        (false, true) => "isolated or nohz_full",
        (true, false) => "in an exclusive cpuset partition",
        (false, false) => {
            "isolated, nohz_full or in an exclusive cpuset partition; point at the CPU to see which"
        }
    };
    legend.push((sign(&["cpu isolated"], ""), words.to_owned()));
    legend
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
    let _ = writeln!(
        out,
        r#"<text class="{class}" x="{x}" y="{y}">{}</text>"#,
        escaped(text)
    );
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
