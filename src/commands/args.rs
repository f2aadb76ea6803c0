//! The groups of options that commands have in common; the policy's are made from the table of settings.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::Error;
use clap::{
    Arg, ArgAction, ArgGroup, ArgMatches, Args, ColorChoice, Command, FromArgMatches, ValueEnum,
};
use itertools::Itertools as _;

use crate::screen::{Given, text_if, with_prefix};
use nicpin::plan::binding::MemoryBinding;
use nicpin::policy::{AVOID_EXCLUSIVE, PolicyEntry, PolicyValue, SETTINGS, Settings};

#[derive(Args)]
#[command(next_help_heading = "General options", next_display_order = 900)]
pub struct General {
    /// The machine to read and write: `/`, the top of a tree that holds the same files, or a capture (read-only)
    #[arg(long, global = true, value_name = "DIR|FILE", default_value = "/")]
    pub root: PathBuf,

    /// The policy file; ROOT/etc/nicpin.toml when it exists
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Print errors only; the exit code is the result
    #[arg(short, long, global = true)]
    pub quiet: bool,

    /// Print all details
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,

    /// Whether to use colours; auto: on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColorChoice,

    #[arg(skip)]
    pub command: String,

    /// The options and selectors that decide on the plan.
    #[arg(skip)]
    pub given: Given,
}

/// Parses seconds, such as `0.5`: `least` or more, and a day at most, as a larger number is a typing error.
pub fn seconds(least: f64) -> impl TypedValueParser<Value = Duration> {
    move |text: &str| match text.parse::<f64>() {
        Ok(seconds) if least <= seconds && seconds < 86_401.0 => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!(
            "`{text}` is not a number of seconds from {least} to 86400"
        )),
    }
}

#[derive(Args)]
pub struct LockArgs {
    /// Wait up to SECONDS for another nicpin that is writing
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    wait: u64,
}

impl LockArgs {
    pub fn wait(&self) -> Duration {
        Duration::from_secs(self.wait)
    }
}

/// [`MemoryBinding`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub enum Memory {
    /// From this node only; allocation fails when it is full
    Bind,
    /// From this node while it has free memory, then from others
    Preferred,
    /// From the node of the CPU that the program runs on, then from others
    Local,
}

impl From<Memory> for MemoryBinding {
    fn from(memory: Memory) -> Self {
        match memory {
            Memory::Bind => Self::Bind,
            Memory::Preferred => Self::Preferred,
            Memory::Local => Self::Local,
        }
    }
}

#[derive(Clone, Default, Args)]
pub struct SelectArgs {
    /// Interfaces: a name, a pattern (`ens*`, `eth[02]`), a PCI address (`3b:00.0`), `driver:mlx5_core`, `node:1` or an
    /// RDMA device (`mlx5_0`); a bond, VLAN or bridge stands for the interfaces below it. Without: all physical
    /// interfaces that are up or have queue IRQs
    #[arg(value_name = "SELECTOR")]
    pub selectors: Vec<String>,

    /// Report a selector that matches nothing as a note, not as an error
    #[arg(long)]
    pub if_present: bool,
}

#[derive(Clone, Default, Args)]
pub struct TargetArgs {
    #[command(flatten)]
    pub select: SelectArgs,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

impl TargetArgs {
    pub fn is_given(&self) -> bool {
        !self.select.selectors.is_empty()
    }

    /// A watcher may leave out CPUs of exclusive cpuset partitions; its runs and reports beside it do so, too.
    #[must_use]
    pub fn as_watched(&self, avoids_exclusive: bool) -> Self {
        let mut target = self.clone();
        let settings = &mut target.policy.0;
        if avoids_exclusive && settings.get(&AVOID_EXCLUSIVE).is_none() {
            settings.set(&AVOID_EXCLUSIVE.entry(), PolicyValue::Word("true"));
        }
        target
    }
}

#[derive(Clone, Copy, Args)]
pub struct FormatArgs<F: ValueEnum + Default + Send + Sync + 'static> {
    /// Output format
    #[arg(
        long,
        value_enum,
        default_value_t,
        default_value_if("json", "true", "json")
    )]
    pub format: F,

    /// The same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Text
    #[default]
    Table,
    /// JSON
    Json,
}

pub type ReportArgs = FormatArgs<ReportFormat>;

impl ReportArgs {
    pub fn is_json(self) -> bool {
        self.format == ReportFormat::Json
    }
}

#[derive(Clone, Default)]
pub struct PolicyArgs(pub Settings);

impl Args for PolicyArgs {
    fn augment_args(command: Command) -> Command {
        let group = ArgGroup::new("PolicyArgs").multiple(true);
        command
            .group(group.args(options().map(|entry| entry.key)))
            .args(options().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PolicyArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for entry in options() {
            let given = match entry.switch() {
                Some((word, _)) => matches
                    .get_flag(entry.key)
                    .then_some(PolicyValue::Word(word)),
                None => matches.get_one(entry.key).cloned(),
            };
            if let Some(value) = given {
                self.0.set(entry, value);
            }
        }
        Ok(())
    }
}

fn options() -> impl Iterator<Item = &'static PolicyEntry> {
    SETTINGS.iter().filter(|entry| entry.is_option())
}

const COMMON: [&str; 7] = [
    "scope",
    "near",
    "exclude",
    "irq-cores",
    "rps",
    "xps",
    "channels",
];

fn option(entry: &'static PolicyEntry) -> Arg {
    let (key, is_common) = (entry.key, COMMON.contains(&entry.key));
    let heading = if is_common {
        "Placement"
    } else {
        "Placement, less often needed"
    };
    let arg = Arg::new(key)
        .help_heading(heading)
        .hide_short_help(!is_common);
    let Some((word, means)) = entry.switch() else {
        return arg
            .long(key)
            .value_name(forms(entry).map(|(form, _)| form).join("|"))
            .value_parser(Values(entry))
            // The help text lists them with their meanings.
            .hide_possible_values(true)
            .long_help(help(entry));
    };
    let no = text_if(word != "true", "no-");
    let (first, rest) = means.split_at(1);
    let name = key.trim_start_matches("only-");
    arg.long(format!("{no}{name}"))
        .action(ArgAction::SetTrue)
        .long_help(first.to_uppercase() + rest)
}

fn forms(entry: &PolicyEntry) -> impl Iterator<Item = (&'static str, &'static str)> {
    entry
        .shown_words()
        .chain(entry.forms.iter().map(|form| form.in_help()))
}

fn help(entry: &PolicyEntry) -> String {
    let mut text = entry.help.to_owned();
    if forms(entry).count() > 1 {
        let default = entry.words.first().map(|(word, _)| *word);
        let mut values = forms(entry).map(|(form, means)| {
            let default = text_if(default == Some(form), "; the default");
            format!("{form} ({means}{default})")
        });
        text = format!("{text}: {}", values.join(", "));
    }
    text + &with_prefix(". ", [entry.note.trim_end_matches('.')])
}

/// Reads the value of an option of the policy, and lists its words for completions.
#[derive(Clone)]
struct Values(&'static PolicyEntry);

impl TypedValueParser for Values {
    type Value = PolicyValue;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<PolicyValue, Error> {
        let Self(entry) = *self;
        StringValueParser::new()
            .try_map(|text| entry.read(&text))
            .parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            self.0
                .shown_words()
                .map(|(word, means)| PossibleValue::new(word).help(means)),
        ))
    }
}
