//! The nicpin program: parses the command line, runs the command, returns its exit code.

mod capture;
mod commands;
mod draw;
mod fleet;
mod screen;
mod start;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use commands::{Cli, command_line, output};

use nicpin::report::exit::Exit;
use nicpin::root::errno_words;

fn main() -> ExitCode {
    start::with_stack(program)
}

fn program() -> ExitCode {
    if let Err(error) = start::prepare() {
        output::say(&format!("signals: {}", errno_words(&error)));
        return Exit::Failed.into();
    }
    match commands::completions::answered(&commands::defined()) {
        Ok(true) => return Exit::Planned.into(),
        Ok(false) => {}
        // For the script of a shell, which shows no messages.
        Err(_) => return Exit::Failed.into(),
    }
    let args: Vec<OsString> = std::env::args_os().collect();
    let json = command_line::wants_json(&args);
    let cli = match Cli::of(args) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            output::say_usage(&error.to_string(), json);
            return Exit::Usage.into();
        }
        Err(help) => {
            // A closed pipe is no error.
            let _ = help.print();
            return Exit::Planned.into();
        }
    };
    let quiet = cli.general.quiet && cli.command.reports();
    let done = print(quiet, json, |out| commands::run(&cli, out));
    // follow_up may wait for the user, who must see the output before that.
    let done = match done {
        Ok(exit) => print(quiet, json, |out| commands::follow_up(&cli, exit, out)),
        failed => failed,
    };
    done.map_or_else(ExitCode::from, ExitCode::from)
}

/// Runs one part of a command and prints its output, unless `quiet`. `Err` is an exit code that ends the program: the
/// command failed, or standard output cannot be written.
fn print(
    quiet: bool,
    json: bool,
    part: impl FnOnce(&mut String) -> anyhow::Result<Exit>,
) -> Result<Exit, u8> {
    let mut out = String::new();
    let result = part(&mut out);
    let out = if quiet { "" } else { &out };
    match (result, output::print(out.as_bytes())) {
        (Err(error), _) => {
            let (text, exit) = (format!("{error:#}"), commands::exit_of(&error));
            output::say(&text);
            if json {
                output::say_as_json(&text, exit);
            }
            Err(exit)
        }
        (Ok(_), Err(error)) => {
            output::say(&format!("{error:#}"));
            Err(Exit::Failed as u8)
        }
        // The reader, such as `head`, closed the pipe.
        (Ok(exit), Ok(false)) => Err(exit as u8),
        (Ok(exit), Ok(true)) => Ok(exit),
    }
}
