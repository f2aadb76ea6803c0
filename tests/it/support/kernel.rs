//! System calls of tests: a thread without openat2(2), POSIX ACLs, and signals.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};

/// Runs in a thread where openat2(2) fails with this errno.
pub fn without_openat2<T: Send>(errno: Errno, run: impl FnOnce() -> T + Send) -> T {
    let confined = || {
        let statement = |code: u32, jt, k| libc::sock_filter {
            code: code.try_into().unwrap(),
            jt,
            jf: 0,
            k,
        };
        let mut filter = [
            // The number of the system call, the first field of `struct seccomp_data`.
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            statement(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                1,
                libc::SYS_openat2.try_into().unwrap(),
            ),
            statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
            statement(
                libc::BPF_RET | libc::BPF_K,
                0,
                libc::SECCOMP_RET_ERRNO | errno as u32,
            ),
        ];
        let program = libc::sock_fprog {
            len: filter.len().try_into().unwrap(),
            filter: filter.as_mut_ptr(),
        };
        // SAFETY: the kernel reads the program and its filter, which live until the calls return.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )
        };
        Errno::result(done).unwrap();
        run()
    };
    std::thread::scope(|scope| scope.spawn(confined).join().unwrap())
}

/// Lets a user write a file that its group may write, by a POSIX ACL.
pub fn let_write(path: &Path, user: u32) -> io::Result<()> {
    let entries = [
        (0x01, 7, u32::MAX),
        (0x02, 7, user),
        (0x04, 5, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 5, u32::MAX),
    ];
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        acl.extend([tag, 0, permissions, 0]);
        acl.extend(u32::to_le_bytes(id));
    }
    let (path, name) = (
        CString::new(path.as_os_str().as_bytes()).unwrap(),
        c"system.posix_acl_access",
    );
    // SAFETY: path and name end with a NUL, and the kernel reads as many bytes of `acl` as it has.
    let done = unsafe {
        libc::setxattr(
            path.as_ptr(),
            name.as_ptr(),
            acl.as_ptr().cast(),
            acl.len(),
            0,
        )
    };
    Errno::result(done).map(drop).map_err(io::Error::from)
}

/// Programs that are started from now on get signals, whatever the caller of the tests ignored: nohup ignores SIGHUP, a
/// shell's `&` SIGINT.
pub fn default_signals() {
    for ignored in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
        // SAFETY: no handler is set that could run.
        unsafe { signal(ignored, SigHandler::SigDfl) }.unwrap();
    }
}
