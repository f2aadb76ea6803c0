//! `--root` on a file: archives packed by hand, and files that are not captures, which give an error of one line.

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::captured::{Captured, assert_same_plans};
use crate::support::run::{fixture, nicpin};
use crate::support::temporary;

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    std::io::Write::write_all(&mut gzip, bytes).unwrap();
    gzip.finish().unwrap()
}

/// An archive with one entry of any name and kind, such as tar(1) does not make.
fn archive(name: &str, kind: tar::EntryType, text: &str) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let mut archive = tar::Builder::new(Vec::new());
    archive.append(&header, text.as_bytes()).unwrap();
    gz(&archive.into_inner().unwrap())
}

#[test]
fn files_that_are_not_captures_are_refused_in_one_line() {
    use tar::EntryType;
    let good = Captured::of(&fixture("two-node")).bytes();
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x55;
    let mut checksum = good.clone();
    let end = checksum.len() - 6;
    checksum[end] ^= 1;
    let mut twice = tar::Builder::new(Vec::new());
    for _ in 0..2 {
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        header.set_mode(0o644);
        twice.append_data(&mut header, "sys/x", &b"1"[..]).unwrap();
    }
    let bomb = {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let mut header = tar::Header::new_gnu();
        header.set_path("proc/interrupts").unwrap();
        header.set_size(1 << 40);
        header.set_mode(0o644);
        header.set_cksum();
        std::io::Write::write_all(&mut gzip, header.as_bytes()).unwrap();
        let zeros = vec![0; 1 << 20];
        for _ in 0..129 {
            std::io::Write::write_all(&mut gzip, &zeros).unwrap();
        }
        gzip.finish().unwrap()
    };
    let mut long = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    long.append_data(&mut header, "x/".repeat(3000) + "x", &b""[..])
        .unwrap();
    let cases: [(&str, Vec<u8>, &str); 16] = [
        (
            "long",
            gz(&long.into_inner().unwrap()),
            "is longer than a path may be",
        ),
        ("empty", vec![], "not compressed with gzip"),
        (
            "text",
            b"processor : 0\n".to_vec(),
            "not compressed with gzip",
        ),
        ("nothing", gz(b""), "is empty"),
        ("no tar", gz(&[b'x'; 2000]), "damaged or truncated"),
        (
            "cut",
            good[..good.len() / 2].to_vec(),
            "damaged or truncated",
        ),
        (
            "cut late",
            good[..good.len() - 1].to_vec(),
            "damaged or truncated",
        ),
        ("flipped", flipped, "damaged or truncated"),
        ("checksum", checksum, "damaged or truncated"),
        (
            "absolute",
            archive("/etc/passwd", EntryType::Regular, "x"),
            "`/etc/passwd` is an absolute path",
        ),
        (
            "above",
            archive("sys/../../etc/x", EntryType::Regular, "x"),
            "leaves the tree",
        ),
        (
            "hard link",
            archive("sys/x", EntryType::Link, ""),
            "is not a file, directory or symbolic link",
        ),
        (
            "device",
            archive("sys/x", EntryType::Block, ""),
            "is not a file, directory or symbolic link",
        ),
        (
            "twice",
            gz(&twice.into_inner().unwrap()),
            "`sys/x` occurs twice",
        ),
        (
            "newer",
            archive("nicpin/capture", EntryType::Regular, "nicpin.capture/9\n"),
            "`nicpin.capture/9`",
        ),
        ("bomb", bomb, "exceeds the limit of 40 MiB"),
    ];
    let dir = temporary();
    for (name, bytes, has) in cases {
        let file = dir.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        for command in ["plan", "check", "capture"] {
            let run = nicpin(&[command, "--root", file.to_str().unwrap()]);
            assert_eq!(
                (run.code, run.stdout.as_str(), run.stderr.lines().count()),
                (1, "", 1),
                "{name}: {run:?}"
            );
            assert!(run.stderr.contains(has), "{name}: {}", run.stderr);
            assert!(
                run.stderr.contains(file.to_str().unwrap()),
                "{name}: {}",
                run.stderr
            );
        }
    }
}

/// Valid archives that capture did not write: one packed from inside the tree, and one without a machine.
#[test]
fn archives_made_by_hand() {
    let mut builder = tar::Builder::new(Vec::new());
    builder.follow_symlinks(false);
    builder.append_dir_all("./", fixture("dl980")).unwrap();
    let dir = temporary();
    let file = dir.path().join("by-hand.tar.gz");
    std::fs::write(&file, gz(&builder.into_inner().unwrap())).unwrap();
    assert_same_plans(&fixture("dl980"), &file);
    std::fs::write(&file, archive("README", tar::EntryType::Regular, "x")).unwrap();
    let run = nicpin(&["plan", "--root", file.to_str().unwrap()]);
    assert_eq!((run.code, run.stderr.lines().count()), (1, 1));
    let missing = "/sys/devices/system/cpu/online: no such file or directory (ENOENT)";
    assert!(run.stderr.contains(missing), "{}", run.stderr);
}
