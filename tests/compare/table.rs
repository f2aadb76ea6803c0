//! The table: machine by tool by measure.

use nicpin::machine::Selection;
use nicpin::policy::Policy;

use super::facts::{Facts, State};
use super::measure::{COLUMNS, Value, measure};
use super::{perftune, scripts, spread};

type Tool = fn(&Facts) -> State;

/// The tools in the order of the table.
pub const TOOLS: [(&str, Tool); 8] = [
    ("nicpin", nicpin),
    ("mlnx_affinity", scripts::mlnx_affinity),
    ("intel -x local", scripts::set_irq_affinity),
    ("rss-ladder", scripts::rss_ladder),
    ("perftune", perftune::automatic),
    ("perftune mq", perftune::mq),
    ("systemd spread", spread::systemd),
    ("irqbalance", spread::irqbalance),
];

/// What nicpin's plan leaves behind.
fn nicpin(facts: &Facts) -> State {
    let mut state = State::found(facts);
    let selection = Selection::new(&facts.host, &[], false).unwrap();
    for interface in nicpin::plan::plan(&facts.host, &Policy::default(), &selection).interfaces {
        for vector in interface.vectors {
            if let Some(cpus) = vector.cpus {
                state.put(vector.irq, cpus.first().unwrap());
            }
        }
        for queue in interface.tx_queues {
            if let Some(cpus) = queue.xps_cpus {
                state.put_xps(&interface.name, queue.queue, cpus);
            }
        }
    }
    state
}

/// What a tool that is ahead of nicpin in a cell gives for it in other cells of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Price {
    /// Vectors on nodes that are not the card's: more cores to take them.
    Remote,
    /// Queues that the card had: fewer to place.
    Queues,
}

impl Price {
    /// Its mark in the table.
    fn mark(self) -> char {
        match self {
            Self::Remote => 'r',
            Self::Queues => 'q',
        }
    }

    /// The column in which it is paid.
    pub fn column(self) -> &'static str {
        match self {
            Self::Remote => "local",
            Self::Queues => "queues",
        }
    }
}

/// A cell in which a tool is ahead of nicpin: the machine, the tool, the column, and the price of it.
pub type Trade = (&'static str, &'static str, &'static str, Price);

/// What every tool leaves behind on every machine.
pub struct Table {
    trades: &'static [Trade],
    machines: Vec<MachineSpec>,
}

struct MachineSpec {
    name: &'static str,
    /// By tool; `None` for one that places nothing there.
    rows: Vec<Option<Row>>,
}

type Row = [Value; COLUMNS.len()];

impl Table {
    /// Runs every tool on every machine.
    pub fn of(machines: &[Facts], trades: &'static [Trade]) -> Self {
        let row = |facts: &Facts, tool: Tool| {
            let state = tool(facts);
            (state.placed > 0).then(|| measure(facts, &state))
        };
        let machine = |facts: &Facts| MachineSpec {
            name: facts.name,
            rows: TOOLS.iter().map(|&(_, tool)| row(facts, tool)).collect(),
        };
        Self { trades, machines: machines.iter().map(machine).collect() }
    }

    /// The value of a cell.
    pub fn value(&self, machine: &str, tool: &str, column: &str) -> Option<Value> {
        let machine = self.machines.iter().find(|of| of.name == machine)?;
        let tool = TOOLS.iter().position(|&(name, _)| name == tool)?;
        Some(machine.rows[tool]?[COLUMNS.iter().position(|&name| name == column)?])
    }

    /// The cells in which a tool is ahead of nicpin.
    pub fn ahead(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let each = self.cells().filter(|(_, _, _, theirs, own)| theirs.is_better(*own));
        each.map(|(machine, tool, column, ..)| (machine, tool, column)).collect()
    }

    /// The cells of tools that place something, with nicpin's value.
    fn cells(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str, Value, Value)> {
        self.machines.iter().flat_map(|machine| {
            let own = machine.rows[0].unwrap();
            TOOLS
                .iter()
                .zip(&machine.rows)
                .filter_map(move |(&(tool, _), row)| Some((tool, (*row)?)))
                .flat_map(move |(tool, row)| {
                    (0..COLUMNS.len()).map(move |at| (machine.name, tool, COLUMNS[at], row[at], own[at]))
                })
        })
    }

    /// All machines.
    pub fn full(&self) -> String {
        let names: Vec<&str> = self.machines.iter().map(|machine| machine.name).collect();
        self.of_machines(&names)
    }

    /// The rows of some machines.
    pub fn of_machines(&self, names: &[&str]) -> String {
        let mut text = line("", COLUMNS.map(str::to_owned));
        for machine in self.machines.iter().filter(|machine| names.contains(&machine.name)) {
            text += &format!("{}\n", machine.name);
            for ((tool, _), row) in TOOLS.iter().zip(&machine.rows) {
                let cell = |at: usize| match row {
                    None => "-".to_owned(),
                    Some(row) => format!("{}{}", row[at], self.mark(machine.name, tool, COLUMNS[at])),
                };
                text += &line(&format!("  {tool}"), std::array::from_fn(cell));
            }
        }
        text
    }

    fn mark(&self, machine: &str, tool: &str, column: &str) -> String {
        let same = |&&(m, t, c, _): &&Trade| (m, t, c) == (machine, tool, column);
        self.trades.iter().find(same).map(|(.., price)| price.mark().to_string()).unwrap_or_default()
    }

    /// For each tool: on how many machines it places something, and on how many of these nicpin is ahead of it in
    /// each column; in parentheses, on how many the tool is.
    pub fn summary(&self) -> String {
        let mut text = line("nicpin is ahead of", COLUMNS.map(str::to_owned));
        for (at, (tool, _)) in TOOLS.iter().enumerate().skip(1) {
            let places = self.machines.iter().filter(|machine| machine.rows[at].is_some()).count();
            let count = |column: &str, ahead: fn(Value, Value) -> bool| {
                let of = |cell: &(&str, &str, &str, Value, Value)| (cell.1, cell.2) == (*tool, column);
                self.cells().filter(|cell| of(cell) && ahead(cell.3, cell.4)).count()
            };
            let cell = |at: usize| {
                let (wins, losses) =
                    (count(COLUMNS[at], |a, b| b.is_better(a)), count(COLUMNS[at], Value::is_better));
                if losses > 0 { format!("{wins} ({losses})") } else { wins.to_string() }
            };
            text += &line(&format!("  {tool} ({places})"), std::array::from_fn(cell));
        }
        text
    }
}

fn line(name: &str, cells: [String; COLUMNS.len()]) -> String {
    let mut line = format!("{name:22}");
    for (column, cell) in COLUMNS.iter().zip(cells) {
        line += &format!("{cell:>0$}", column.len().max(6) + 1);
    }
    line + "\n"
}
