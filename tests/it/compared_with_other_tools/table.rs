//! The table: machine by tool by measure.

use super::facts::{Facts, State};
use super::measure::{COLUMNS, Value, measure};
use super::recorded::{TOOLS, replay};

pub struct Table {
    machines: Vec<MachineRows>,
}

struct MachineRows {
    name: &'static str,
    nicpin: Row,
    /// By tool; `None` for one that places nothing there.
    tools: Vec<Option<Row>>,
}

type Row = [Value; COLUMNS.len()];

/// A cell of a tool, beside nicpin's of the same column.
struct Cell<'a> {
    tool: &'a Row,
    nicpin: &'a Row,
    column: usize,
}

impl Cell<'_> {
    fn is_ahead(&self) -> bool {
        self.tool[self.column].is_better(self.nicpin[self.column])
    }

    fn is_behind(&self) -> bool {
        self.nicpin[self.column].is_better(self.tool[self.column])
    }

    /// What the tool pays where it is ahead: `q` queues of the card, `r` vectors on other nodes, `t` more queues on one
    /// thread of a core, `!` nothing.
    fn mark(&self) -> &'static str {
        let pays = |column: &str| {
            let column = COLUMNS.iter().position(|&name| name == column).unwrap();
            Cell { column, ..*self }.is_behind()
        };
        match self.is_ahead() {
            false => "",
            true if pays("queues") => "q",
            true if pays("local") => "r",
            true if pays("per CPU") => "t",
            true => "!",
        }
    }
}

impl Table {
    pub fn of(machines: &[Facts]) -> Self {
        let tool = |facts: &Facts, recording: &str| {
            let state = replay(recording, facts);
            (state.placed > 0).then(|| measure(facts, &state))
        };
        let machine = |facts: &Facts| MachineRows {
            name: facts.name,
            nicpin: measure(facts, &State::planned(facts)),
            tools: TOOLS
                .iter()
                .map(|(_, recording)| tool(facts, recording))
                .collect(),
        };
        Self {
            machines: machines.iter().map(machine).collect(),
        }
    }

    /// The cells in which a tool is ahead of nicpin and pays nothing for it.
    pub fn ahead(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let of = |machine: &MachineRows, tool: usize| {
            let cells = machine.cells(tool).filter(|cell| cell.mark() == "!");
            let columns: Vec<_> = cells
                .map(|cell| (machine.name, TOOLS[tool].0, COLUMNS[cell.column]))
                .collect();
            columns
        };
        self.machines
            .iter()
            .flat_map(|machine| (0..TOOLS.len()).flat_map(move |tool| of(machine, tool)))
            .collect()
    }

    pub fn full(&self) -> String {
        let names: Vec<&str> = self.machines.iter().map(|machine| machine.name).collect();
        self.of_machines(&names)
    }

    pub fn of_machines(&self, names: &[&str]) -> String {
        let mut text = line("", COLUMNS.map(str::to_owned));
        for machine in self
            .machines
            .iter()
            .filter(|machine| names.contains(&machine.name))
        {
            text += &format!("{}\n", machine.name);
            text += &line("  nicpin", machine.nicpin.map(|value| value.to_string()));
            for (at, (tool, _)) in TOOLS.iter().enumerate() {
                let mut cells = std::array::from_fn(|_| "-".to_owned());
                for cell in machine.cells(at) {
                    cells[cell.column] = format!("{}{}", cell.tool[cell.column], cell.mark());
                }
                text += &line(&format!("  {tool}"), cells);
            }
        }
        text
    }

    /// Counts for each tool on how many machines it places vectors, on how many of these nicpin is ahead in each
    /// column, and in parentheses on how many the tool is.
    pub fn summary(&self) -> String {
        let mut text = line("nicpin is ahead of", COLUMNS.map(str::to_owned));
        for (at, (tool, _)) in TOOLS.iter().enumerate() {
            let mut counts = [(0, 0); COLUMNS.len()];
            for cell in self.machines.iter().flat_map(|machine| machine.cells(at)) {
                counts[cell.column].0 += usize::from(cell.is_behind());
                counts[cell.column].1 += usize::from(cell.is_ahead());
            }
            let places = self
                .machines
                .iter()
                .filter(|machine| machine.tools[at].is_some())
                .count();
            let cells = counts.map(|(wins, losses)| match losses {
                0 => wins.to_string(),
                _ => format!("{wins} ({losses})"),
            });
            text += &line(&format!("  {tool} ({places})"), cells);
        }
        text
    }
}

impl MachineRows {
    fn cells(&self, tool: usize) -> impl Iterator<Item = Cell<'_>> {
        let row = self.tools[tool].iter();
        row.flat_map(move |tool| {
            (0..COLUMNS.len()).map(move |column| Cell {
                tool,
                nicpin: &self.nicpin,
                column,
            })
        })
    }
}

fn line(name: &str, cells: [String; COLUMNS.len()]) -> String {
    let mut line = format!("{name:21}");
    for (column, cell) in COLUMNS.iter().zip(cells).take(COLUMNS.len() - 1) {
        line += &format!("{cell:>0$}", column.len().max(5) + 1);
    }
    line + "\n"
}
