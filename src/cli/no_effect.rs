//! Options that change nothing beside others. They are refused, so that nobody relies on them.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, Error, error::ErrorKind};

/// An error if an option is given that has no effect beside the others.
pub(super) fn refuse(command: &mut Command, matches: &ArgMatches) -> Result<(), Error> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(());
    };
    let given = |id: &str| {
        matches.try_contains_id(id).is_ok()
            && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let is = |names: &[&str]| names.contains(&name);
    let format = if given("json") {
        "json".to_owned()
    } else {
        let given = matches.try_get_raw("format").ok().flatten();
        given
            .and_then(|mut words| words.next())
            .map_or("table".to_owned(), |word| {
                word.to_string_lossy().into_owned()
            })
    };
    let has_format = |names: &[&str]| names.contains(&&*format);
    let of_command = format!("nicpin {name}");
    let of_format = format!("--format {format}");
    let prints_itself = ["draw", "completions", "man", "help", "irqbalance-policy"];
    let plans_nothing = ["restore", "confirm", "capture", "measure", "flow"];
    let is_brief = ["confirm", "run", "compare", "nodes", "flow", "capture"];
    let not_drawn = [
        "xps",
        "rps",
        "rfs",
        "napi-threads",
        "channels",
        "irqbalance",
    ];
    let is_document = has_format(&["json", "sh", "prometheus", "nagios"]);
    let no_file = !given("output");
    let no_export = !given("export_json") && !given("export_markdown");
    let rules: [(bool, &str, &[&str]); 19] = [
        (
            is(&["completions", "man", "help"]),
            &of_command,
            &["root", "config"],
        ),
        (is(&prints_itself), &of_command, &["quiet", "verbose"]),
        (is(&plans_nothing), &of_command, &["config"]),
        (is(&is_brief), &of_command, &["verbose"]),
        (is(&["watch"]), &of_command, &["quiet"]),
        (
            is_document,
            &of_format,
            &["verbose", "all", "masks", "workers"],
        ),
        (has_format(&["sh"]), &of_format, &["explain", "irqbalance"]),
        (
            has_format(&["sh", "prometheus"]) && no_file,
            &of_format,
            &["quiet"],
        ),
        (
            has_format(&["prometheus", "nagios"]),
            &of_format,
            &["irqbalance"],
        ),
        (
            is(&["check"]) && !has_format(&["prometheus"]),
            &of_format,
            &["output"],
        ),
        (
            is(&["check"]) && !has_format(&["nagios"]),
            &of_format,
            &["warning", "critical"],
        ),
        (is(&["draw"]), &of_command, &not_drawn),
        (is(&["fleet"]), &of_command, &["root"]),
        (given("all"), "--all", &["verbose"]),
        (given("explain"), "--explain", &["all", "verbose"]),
        (given("workers"), "--workers", &["all", "verbose"]),
        (given("dry_run"), "--dry-run", &["wait", "strict"]),
        (is(&["draw"]) && no_file, "standard output", &["force"]),
        (is(&["compare"]) && no_export, "standard output", &["force"]),
    ];
    for (applies, beside, options) in rules {
        if let Some(option) = options.iter().find(|id| applies && given(id)) {
            let option = option.replace('_', "-");
            let text = format!("--{option} has no effect with {beside}");
            let command = command.find_subcommand_mut(name);
            return Err(command.map_or_else(
                || Error::raw(ErrorKind::ArgumentConflict, &text),
                |command| command.error(ErrorKind::ArgumentConflict, &text),
            ));
        }
    }
    Ok(())
}
