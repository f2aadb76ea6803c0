//! The nicpin program: parses the command line, runs the command, returns its exit code.

mod capture;
mod commands;
mod draw;
mod fleet;
mod screen;
mod start;
mod watch;

use std::env::args_os;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;

use commands::{Cli, command_line, completions, output};

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
    match completions::answer_shell(commands::defined) {
        Ok(true) => return Exit::Planned.into(),
        Ok(false) => {}
        // For the script of a shell, which shows no messages.
        Err(_) => return Exit::Failed.into(),
    }
    let args: Vec<OsString> = args_os().collect();
    let json = command_line::wants_json(&args);
    let cli = match Cli::of(args) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            output::say_usage(error, json);
            return Exit::Usage.into();
        }
        Err(help) => {
            return match help.print() {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                    output::say(&format!("standard output: {}", errno_words(&error)));
                    Exit::Failed.into()
                }
                _ => Exit::Planned.into(),
            };
        }
    };
    let mut out = String::new();
    let result = commands::run(&cli, &mut out);
    if cli.general.quiet {
        out.clear();
    }
    let printed = output::print(out.as_bytes());
    match (result, printed) {
        (Err(error), _) => {
            let (text, exit) = (format!("{error:#}"), commands::exit_of(&error));
            output::say(&text);
            if json {
                output::say_as_json(&text, exit);
            }
            exit.into()
        }
        (Ok(_), Err(error)) => {
            output::say(&format!("{error:#}"));
            Exit::Failed.into()
        }
        // The reader, such as `head`, may have closed the pipe.
        (Ok(exit), Ok(_)) => exit.into(),
    }
}
