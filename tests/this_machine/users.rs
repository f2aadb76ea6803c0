//! Commands as root and as another user.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::kernel::let_write;
use crate::support::run::{MachineTree, copied_binary};

/// Two users are needed.
pub fn a_policy_of_another_user() {
    let machine = MachineTree::with_policy(0o664);
    let path = machine.path("/etc/nicpin.toml");
    let own = |uid, gid| std::os::unix::fs::chown(&path, Some(uid), Some(gid)).unwrap();
    // The groups of root and of the user who runs nicpin are trusted like the users.
    own(0, 0);
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    own(0, 65534);
    let run = machine.nicpin(&["apply"]);
    assert!(
        run.code == 1 && run.stderr.contains("is writable by group 65534"),
        "{}",
        run.stderr
    );
    own(65534, 0);
    let run = machine.nicpin(&["apply"]);
    assert!(
        run.code == 1 && run.stderr.contains("is owned by user 65534"),
        "{}",
        run.stderr
    );
    // The owner of a tree is trusted with all of its files.
    std::os::unix::fs::chown(machine.path("/"), Some(65534), Some(65534)).unwrap();
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
}

pub fn only_root_applies() {
    let machine = MachineTree::of("two-node");
    machine.open_to_all();
    machine.set_mode("/", 0o755);
    let before = machine.snapshot();
    let run = machine.nicpin_as_nobody(&["apply"]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr
            .contains("run/nicpin: permission denied (EACCES): only root can apply and restore"),
        "{}",
        run.stderr
    );
    assert_eq!(machine.snapshot(), before);
    assert_eq!(
        (
            machine.nicpin_as_nobody(&["plan"]).code,
            machine.nicpin_as_nobody(&["check"]).code
        ),
        (0, 2)
    );
}

/// With `hidepid=` the kernel refuses to show processes of other users, or hides them.
pub fn hidden_processes_fail_no_command() {
    let (_dir, binary) = copied_binary();
    let run = |hidepid: &str, args: &str| {
        let script = format!(
            "mount -t proc -o hidepid={hidepid} proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups {} {args}",
            binary.display()
        );
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .output()
            .unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for args in [
        "plan",
        "check",
        "status --seconds 0.1",
        "measure -d 0.1",
        "run --near eth0 -- true",
    ] {
        let open = run("0", args);
        for hidepid in ["1", "2"] {
            assert_eq!(run(hidepid, args), open, "hidepid={hidepid} {args}");
        }
    }
}

/// A file system with POSIX ACLs is needed.
pub fn an_acl_of_another_user() {
    let machine = MachineTree::with_policy(0o644);
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    for path in [
        "/etc/nicpin.toml",
        "/etc",
        "/run/nicpin",
        "/run/nicpin/lock",
        "/run/nicpin/state.json",
    ] {
        let mode = std::fs::metadata(machine.path(path))
            .unwrap()
            .permissions()
            .mode();
        let_write(&machine.path(path), 4711).unwrap();
        let before = machine.snapshot();
        let run = machine.nicpin(&["apply"]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{path}");
        let expected = format!(
            "{path}: is writable by user 4711 (POSIX ACL), so nicpin does not trust it; fix: setfacl -b it"
        );
        assert!(run.stderr.contains(&expected), "{}", run.stderr);
        assert_eq!(machine.snapshot(), before);
        // The bits of the group are the mask of the ACL.
        machine.set_mode(path, mode & 0o755);
        assert_eq!(machine.nicpin(&["apply"]).code, 0);
    }
}
