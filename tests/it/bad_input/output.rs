//! Output that cannot be written, and files that it may not replace.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use snapbox::{assert_data_eq, str};

use crate::support::run::{MachineTree, fixture, nicpin};
use crate::support::temporary;

#[test]
fn a_closed_pipe_is_not_an_error() {
    let root = fixture("dl980");
    let script = format!(
        "'{}' plan --root '{}' | head -n 1",
        env!("CARGO_BIN_EXE_nicpin"),
        root.display()
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let expected = std::fs::read(fixture("expected/dl980.txt")).unwrap();
    assert!(output.stdout.ends_with(b"\n") && expected.starts_with(&output.stdout));
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    for args in ["--help", "--version", "help plan", "plan --help"] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_nicpin"))
            .args(args.split(' '))
            .stdout(full)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{args}");
        assert_data_eq!(
            String::from_utf8(output.stderr).unwrap(),
            str![[r"
nicpin: standard output: no space left on device (ENOSPC)

"]]
        );
    }
}

/// An existing file is replaced as a whole, with its permissions; a link is not followed and stays.
#[test]
fn files_for_output() {
    let (machine, dir) = (MachineTree::of("two-node"), temporary());
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, other, link) = (path("file.svg"), path("other"), path("link.svg"));
    std::fs::write(&file, "before").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::hard_link(&file, &other).unwrap();
    let fails = |args: &[&str]| {
        let said = machine.fails(args, 1);
        said.replace(dir.path().to_str().unwrap(), "DIR")
    };
    assert_data_eq!(
        fails(&["draw", "-o", &file]),
        str![[r"
nicpin: DIR/file.svg: file exists; fix: use --force to replace it

"]]
    );
    assert_eq!(machine.nicpin(&["draw", "-o", &file, "--force"]).code, 0);
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("<svg"));
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "before");

    for target in [&*other, "/dev/full", "/no/such/file"] {
        symlink(target, &link).unwrap();
        for args in [
            &["draw", "-o", &link, "--force"][..],
            &["capture", "-o", &link, "--force"],
        ] {
            assert_data_eq!(
                fails(args),
                str![[r"
nicpin: DIR/link.svg: is a symbolic link, which is not replaced; fix: name the file that it leads to

"]]
            );
        }
        assert_eq!(std::fs::read_link(&link).unwrap().to_str(), Some(target));
        std::fs::remove_file(&link).unwrap();
    }
    let fifo = path("fifo");
    nix::unistd::mkfifo(fifo.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for args in [
        &["draw", "-o", &fifo, "--force"][..],
        &["capture", "-o", &fifo, "--force"],
        &["check", "--format", "prometheus", "-o", &fifo],
    ] {
        assert_data_eq!(
            fails(args),
            str![[r"
nicpin: DIR/fifo: is a FIFO or a socket, not a regular file

"]]
        );
    }
    // The comparison is on standard output already.
    assert!(crate::commands::output::check_new("-".as_ref(), true).is_err());
    std::fs::create_dir(path("man8")).unwrap();
    symlink(&other, path("man8/nicpin.8")).unwrap();
    let run = nicpin(&["man", "--into", dir.path().to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    let said = run.stderr.replace(dir.path().to_str().unwrap(), "DIR");
    assert_data_eq!(
        said,
        str![[r"
nicpin: DIR/man8/nicpin.8: is a symbolic link, which is not replaced; fix: name the file that it leads to

"]]
    );
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "before");
    let left = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert!(
        left.into_iter()
            .all(|name| !name.to_string_lossy().ends_with(".new"))
    );
}
