//! The nicpin command: parses the command line, runs the command, gives the exit code.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use nicpin::cli::Cli;
use nicpin::commands::{self, Exit};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are no error. A closed pipe is none either.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Planned.into() };
        }
    };
    let mut out = String::new();
    let result = commands::run(&cli, &mut out);
    let written = std::io::stdout().lock().write_all(out.as_bytes());
    let exit = match (result, written) {
        (Err(error), _) => {
            let text = format!("{error:#}").replace('\n', " ");
            let _ = writeln!(std::io::stderr(), "nicpin: {text}");
            commands::exit_of(&error)
        }
        // The reader has seen enough.
        (Ok(exit), Err(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => exit,
        (Ok(_), Err(error)) => {
            let _ = writeln!(std::io::stderr(), "nicpin: standard output: {error}");
            Exit::Failed
        }
        (Ok(exit), Ok(())) => exit,
    };
    exit.into()
}
