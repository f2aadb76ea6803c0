//! The names of root's listening Unix sockets that have no file. `/proc/net/unix` lists every socket of every process,
//! which takes 10 ms where there are 8,000; to a request for those that listen the kernel answers in 0.3 ms.

use std::io::{self, BufRead as _, BufReader};

use netlink_bindings::unix_diag::{Req, Request, ShowFlags};
use nix::libc::AF_UNIX;
use nix::sys::socket::SockProtocol;

use crate::read::netlink::Client;
use crate::root::{FileError, Root};

/// Where a tree keeps the names, one at the end of each line.
pub(crate) const UNIX_SOCKETS: &str = "/proc/net/unix";
/// `TCP_LISTEN` (`include/net/tcp_states.h`), which is the state of a listening Unix socket, too.
const LISTEN: u32 = 10;

/// The names that are `wanted`, as `/proc/net/unix` has them: `@` for each NUL.
pub(crate) fn listening(
    root: &Root,
    wanted: fn(&str) -> bool,
) -> Result<Option<Vec<String>>, FileError> {
    if !root.is_real() {
        let text = root.read_opt(UNIX_SOCKETS)?.unwrap_or_default();
        let names = text.lines().filter_map(name).filter(|name| wanted(name));
        return Ok(Some(names.map(str::to_owned).collect()));
    }
    // A kernel may be built without the answer.
    let names =
        dump(wanted).or_else(|_| root.read_in_parts(UNIX_SOCKETS, |file| listed(file, wanted)))?;
    root.remember(UNIX_SOCKETS, || names.join("\n"));
    Ok(Some(names))
}

fn dump(wanted: fn(&str) -> bool) -> io::Result<Vec<String>> {
    let mut request = Req::new();
    request.sdiag_family = u8::try_from(AF_UNIX).map_err(io::Error::other)?;
    request.udiag_states = 1 << LISTEN;
    request.udiag_show = ShowFlags::Name as u32 | ShowFlags::Uid as u32;
    let request = Request::new().op_unix_diag_dump(&request);
    Client::connect(SockProtocol::NetlinkSockDiag)?.request(&request, |(_, reply)| {
        let name: String = String::from_utf8_lossy(reply.get_name().ok()?).replace('\0', "@");
        // The owner is known since Linux 5.3.
        (reply.get_uid().unwrap_or_default() == 0 && wanted(&name)).then_some(name)
    })
}

fn listed(file: &mut dyn io::Read, wanted: fn(&str) -> bool) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        names.extend(name(&line).filter(|name| wanted(name)).map(str::to_owned));
    }
    Ok(names)
}

/// The name in a line of `/proc/net/unix`.
fn name(line: &str) -> Option<&str> {
    line.rsplit(' ').next().filter(|name| name.starts_with('@'))
}
