//! The nicpin command: parses the command line, runs the command, gives the exit code.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use nicpin::cli::Cli;
use nicpin::commands;
use nicpin::report::exit::Exit;

fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(Cli::complete(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are no error. A closed pipe is none either.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Planned.into() };
        }
    };
    let done = print(|out| commands::run(&cli, out));
    // What is printed so far is on the screen when somebody is asked.
    let done = match done {
        Ok(exit) => print(|out| commands::follow_up(&cli, exit, out)),
        failed => failed,
    };
    done.unwrap_or_else(|exit| exit).into()
}

/// Runs a part of a command and prints what it has to say; the exit code, as an error when it failed to say it.
fn print(part: impl FnOnce(&mut String) -> anyhow::Result<Exit>) -> Result<Exit, Exit> {
    let mut out = String::new();
    let result = part(&mut out);
    let written = std::io::stdout().lock().write_all(out.as_bytes());
    match (result, written) {
        (Err(error), _) => {
            let text = format!("{error:#}").replace('\n', " ");
            let _ = writeln!(std::io::stderr(), "nicpin: {text}");
            Err(commands::exit_of(&error))
        }
        // The reader has seen enough.
        (Ok(exit), Err(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(exit),
        (Ok(_), Err(error)) => {
            let _ = writeln!(std::io::stderr(), "nicpin: standard output: {error}");
            Err(Exit::Failed)
        }
        (Ok(exit), Ok(())) => Ok(exit),
    }
}
