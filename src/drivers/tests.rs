//! A name for every row of the table, the traps among them, and odd text.

use std::fmt::Write as _;

use super::*;

/// Each example of the table: driver, action, and the expected meaning. A pattern without placeholders is its own
/// example; [`made`] has names for the others.
fn examples() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    Driver::all().iter().flat_map(|row| {
        let driver = row.names.split(' ').next().unwrap();
        let examples = row.examples.iter().map(|example| {
            let (action, meaning) = example.rsplit_once(" = ").unwrap();
            (action, meaning)
        });
        let literals = row.irqs.iter().filter(|irq| !irq.contains('{'));
        let literals = literals.map(|irq| {
            let (action, meaning) = irq.rsplit_once(" = ").unwrap();
            (action, meaning.split([' ', ',']).next().unwrap())
        });
        let all = examples.chain(literals);
        all.map(move |(action, meaning)| (driver, action, meaning))
    })
}

fn words(named: Option<ActionName>) -> String {
    let Some(named) = named else {
        return "unknown".to_owned();
    };
    let mut text = format!("{:?} {:?} ", named.role, named.numbering).to_lowercase();
    match named.number {
        Some(number) => write!(text, "{number}").unwrap(),
        None => text.push('-'),
    }
    text + " " + named.interface.unwrap_or("-")
}

fn of<'a>(driver: &'a str, action: &'a str) -> Option<ActionName<'a>> {
    classify(Some(driver), action, &[])
}

fn read(driver: &str, action: &str) -> String {
    words(of(driver, action))
}

#[track_caller]
fn expect(cases: &[(&str, &str, &str)]) {
    for (driver, action, expected) in cases {
        assert_eq!(read(driver, action), *expected, "{driver}: {action}");
    }
}

#[test]
fn examples_mean_what_they_say() {
    for (driver, action, meaning) in examples() {
        let found = of(driver, action).unwrap();
        assert_eq!(
            found.role.with_queue(found.number),
            meaning,
            "{driver}: {action}"
        );
        let row = found.told.row;
        let named = found.interface.filter(|name| action.contains(name));
        assert_eq!(named.is_some(), row.contains("{if}"), "{driver}: {action}");
    }
}

#[test]
fn names_in_a_device_tree() {
    for (name, expected) in [
        ("rx", "rx shared - -"),
        ("tx_irq", "tx shared - -"),
        ("rx3", "rx rank 3 -"),
        ("txq-0", "unknown"),
        ("txq0", "tx rank 0 -"),
        ("tx-2", "tx rank 2 -"),
        ("pps", "control none - -"),
        ("eth_wake_irq", "control none - -"),
        ("sfty", "control none - -"),
        ("tx_ts1", "control none - -"),
        ("macirq", "unknown"),
        ("int0", "unknown"),
        ("fdma", "unknown"),
    ] {
        assert_eq!(words(in_device_tree(name)), expected, "{name}");
    }
}

/// A name that the pattern describes for each of its roles, and the role.
fn made_of(pattern: &Pattern) -> impl Iterator<Item = (String, Role)> {
    let fill = |way: &str| {
        let parts = [
            ("{way}", way),
            ("{if}", "eth0"),
            ("{n}", "5"),
            ("{pci}", "0000:82:00.0"),
            ("{h}", "12345"),
            ("{hh}", "07"),
            ("{x}", "x1"),
            ("{sep}", "-"),
            ("{ctl}", "eth0-link"),
        ];
        let (name, _) = pattern
            .row()
            .rsplit_once(" = ")
            .unwrap_or((pattern.row(), ""));
        parts
            .iter()
            .fold(name.to_owned(), |name, (placeholder, text)| {
                name.replace(placeholder, text)
            })
    };
    pattern.roles().map(move |(way, role)| (fill(way), role))
}

/// Each pattern of the table with its driver, and the names that are made of it.
fn made() -> impl Iterator<Item = (&'static str, &'static Pattern, String, Role)> {
    let rows = Driver::all().iter().zip(&*PATTERNS);
    rows.flat_map(|(row, patterns)| {
        let driver = row.names.split(' ').next().unwrap();
        let names = patterns.iter().flat_map(|pattern| {
            made_of(pattern).map(move |(action, role)| (pattern, action, role))
        });
        names.map(move |(pattern, action, role)| (driver, pattern, action, role))
    })
}

#[test]
fn names_made_of_a_pattern_fit_it_best() {
    for (driver, pattern, action, role) in made() {
        let found = of(driver, &action).unwrap();
        let number = pattern.row().contains("{n}").then_some(5);
        assert_eq!(
            (found.told.row, found.role, found.number),
            (pattern.row(), role, number),
            "{driver}: {action}"
        );
    }
}

#[test]
fn rows_are_well_formed() {
    let mut names: Vec<&str> = Vec::new();
    for (row, patterns) in Driver::all().iter().zip(&*PATTERNS) {
        assert_eq!(patterns.len(), row.irqs.len() + row.rdma.len(), "{row:?}");
        names.extend(row.names.split(' '));
        for pattern in patterns {
            let text = pattern.row();
            let count = |name: &str| text.matches(name).count();
            assert!(
                text.is_ascii() && count("{if}") <= 1 && count("{pci}") <= 1,
                "{text}"
            );
            let numbered = matches!(
                pattern.numbering,
                Numbering::Queue
                    | Numbering::Rank
                    | Numbering::TxThenRx
                    | Numbering::RxThenTx
                    | Numbering::Tg3
                    | Numbering::Mlx4
                    | Numbering::Paired
                    | Numbering::PairedRank
                    | Numbering::Realtek(_)
                    | Numbering::Virtqueue
            );
            // The queue names of a driver (`has_queue_name`) have a number, whatever it counts.
            if !text.ends_with("= data") {
                assert_eq!(count("{n}"), usize::from(numbered), "{text}");
            }
        }
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a driver in two rows");
}

#[test]
fn no_two_patterns_fit_equally_well() {
    let examples = examples().map(|(driver, action, _)| (driver, action.to_owned()));
    let all = examples.chain(made().map(|(driver, _, action, _)| (driver, action)));
    for (driver, action) in all {
        let patterns = DriverPatterns::of(Some(driver), None);
        let named = patterns.classify(&action).unwrap();
        let fits = || patterns.ours.iter().flat_map(|other| other.fits(&action));
        let is_first = |(pattern, role): (&Pattern, Role)| {
            (pattern.row(), role) == (named.told.row, named.role)
        };
        let mut first = fits().filter(|(pattern, role, _)| is_first((*pattern, *role)));
        let literals = first.next().unwrap().2.literals;
        for (other, role, fit) in fits() {
            let equal = fit.literals == literals && role.is_queue() == named.role.is_queue();
            assert!(
                !equal || is_first((other, role)),
                "{driver}: {action}: {named:?}, {other:?}"
            );
        }
    }
}

#[test]
fn a_taught_row_comes_before_ours() {
    let taught = |rows: &[&str]| {
        let irqs = rows.iter().map(|row| Pattern::taught(row).unwrap());
        vec![Taught {
            name: "igb".to_owned(),
            irqs: irqs.collect(),
        }]
    };
    let rows = taught(&[
        "{if}-TxRx-{n} = data",
        "newnic:rx{n}=rx by order",
        "err{x} = control",
    ]);
    let read = |driver, action| {
        let found = classify(Some(driver), action, &rows);
        words(found)
            + &found
                .map(|name| format!(" by {}", name.told))
                .unwrap_or_default()
    };
    for (driver, action, expected) in [
        (
            "igb",
            "eth0-TxRx-3",
            "data none 3 eth0 by {if}-TxRx-{n} = data (policy)",
        ),
        (
            "igb",
            "newnic:rx3",
            "rx rank 3 - by newnic:rx{n}=rx by order (policy)",
        ),
        (
            "igb",
            "err-eth0",
            "control none - - by err{x} = control (policy)",
        ),
        ("igb", "eth0-rx-0", "rx queue 0 eth0 by {if}-{way}-{n}"),
        (
            "ixgbe",
            "eth0-TxRx-3",
            "combined queue 3 eth0 by {if}-{way}-{n}",
        ),
    ] {
        assert_eq!(read(driver, action), expected);
    }
    let wrong = |row| Pattern::taught(row).unwrap_err();
    for (row, expected) in [
        (
            "newnic:rx{n}",
            "`newnic:rx{n}` needs its role, as in `newnic:rx{n} = rx`; expected one of combined, rx, tx, data, rdma, control",
        ),
        (
            "newnic:rx{n} = receive",
            "`newnic:rx{n}` needs its role, as in `newnic:rx{n} = rx`; expected one of combined, rx, tx, data, rdma, control",
        ),
        (
            "a{q} = rx",
            "`a{q}`: `{` begins one of {n}, {if}, {way}, {pci}, {h}, {x}",
        ),
        (
            "a{n = rx",
            "`a{n`: `{` begins one of {n}, {if}, {way}, {pci}, {h}, {x}",
        ),
        ("a{n}{n} = rx", "`a{n}{n}` has {n} twice"),
        (
            "a{way} = rx",
            "`a{way}` has its role in {way}; leave out `rx`",
        ),
        (
            "a{n} = rx of tg3",
            "`a{n}`: expected a role, and `by order` or nothing",
        ),
        (
            "a{n} = rx twice",
            "`twice` is not a numbering; expected `by order`, or nothing",
        ),
        ("{x} = data", "a pattern that fits every name tells nothing"),
        (" = rx", "a pattern that fits every name tells nothing"),
    ] {
        assert_eq!(wrong(row), expected);
    }
}

#[test]
fn control_vectors_that_look_like_queues() {
    expect(&[
        ("i40e", "i40e-0000:01:00.0:fdir-TxRx-0", "control none - -"),
        ("ice", "ice-0000:82:00.0:ctrl-TxRx-0", "control none - -"),
        ("i40e", "irdma-0000:3b:00.0-AEQ", "control none - -"),
        (
            "mlx5_core",
            "mlx5_async@pci:0000:19:00.0",
            "control none - -",
        ),
        (
            "mlx5_core",
            "mlx5_async0@pci:0000:19:00.0",
            "control none - -",
        ),
        (
            "mlx5_core",
            "mlx5_cmd_eq@pci:0000:19:00.0",
            "control none - -",
        ),
        (
            "mlx5_core",
            "mlx5_async_eq@pci:0000:19:00.0",
            "control none - -",
        ),
        (
            "mlx5_core",
            "mlx5_sf_ctrl0@pci:0000:19:00.0",
            "control none - -",
        ),
        ("nicvf", "eth0-qset-err-1", "control none - eth0"),
        ("rvu_nicpf", "RVUPF1_FLR0", "control none - -"),
        ("rvu_nicvf", "RVUVFAF Mbox", "control none - -"),
        (
            "a-driver-to-come",
            "new-0000:01:00.0:fdir-TxRx-0",
            "control none - -",
        ),
        ("a-driver-to-come", "eth0-ctrl-rx-0", "control none - -"),
        ("dwc-eth-dwmac", "eth0:safety-ce", "control none - -"),
    ]);
}

#[test]
fn names_of_other_devices_are_unknown_and_telling_names_are_not() {
    expect(&[
        ("virtio_net", "virtio5-input", "unknown"),
        ("virtio_net", "virtio3-req.0", "unknown"),
        ("virtio_net", "virtio0-cursor", "unknown"),
        ("mlx5_core", "eth0-TxRx-0", "unknown"),
        ("mlx4_core", "nvme0q1", "unknown"),
        ("i40e", "ens1f0-TxRx-0", "unknown"),
        ("ena", "eth0-Tx-Rx-", "unknown"),
        ("gve", "gve-ntfy-blk@pci:0000:00:04.0", "unknown"),
        ("igb", "PCIe PME", "unknown"),
        ("", "PCIe PME", "unknown"),
        ("", "mlx5_comp0@pci:0000:82:00.0", "combined queue 0 -"),
        ("", "", "unknown"),
        ("igb", "", "unknown"),
    ]);
}

#[test]
fn an_interface_is_captured_whole_and_as_written() {
    fn captured<'a>(driver: Option<&str>, action: &'a str) -> Option<&'a str> {
        classify(driver, action, &[])?.interface
    }
    for interface in [
        "eth1",
        "eth10",
        "br-lan",
        "en-p0",
        "eth0.5",
        "ens1f0np0",
        "a-rx-0",
        "p@1",
        "rx-0",
        "TxRx-0",
        "wan:1",
        "ünï",
        "fifteen-bytes-1",
    ] {
        for (driver, prefix) in [("igb", ""), ("i40e", "i40e-"), ("ice", "ice-"), ("", "")] {
            let driver = Some(driver).filter(|driver| !driver.is_empty());
            let action = format!("{prefix}{interface}-TxRx-3");
            assert_eq!(captured(driver, &action), Some(interface), "{action}");
        }
        assert_eq!(
            captured(Some("vmxnet3"), &format!("{interface}-rx-12")),
            Some(interface)
        );
        assert_eq!(
            captured(Some("ena"), &format!("{interface}-Tx-Rx-0")),
            Some(interface)
        );
        assert_eq!(captured(Some("r8169"), interface), Some(interface));
    }
    for odd in [
        "sixteen-bytes-16-TxRx-0",
        "eth/0-TxRx-0",
        "eth 0-TxRx-0",
        "-TxRx-0",
    ] {
        assert_eq!(
            of("ixgbevf", odd).filter(|named| named.number.is_some()),
            None,
            "{odd}"
        );
    }
}

#[test]
fn numbers_are_decimal_and_fit() {
    expect(&[
        ("igb", "eth0-TxRx-0", "combined queue 0 eth0"),
        ("igb", "eth0-TxRx-10", "combined queue 10 eth0"),
        ("i40e", "i40e-eth0-TxRx-65535", "combined queue 65535 eth0"),
        ("i40e", "i40e-eth0-TxRx-65536", "unknown"),
        ("i40e", "i40e-eth0-TxRx-1a", "unknown"),
        ("i40e", "i40e-eth0-TxRx--1", "unknown"),
        ("i40e", "i40e-eth0-TxRx-٣", "unknown"),
    ]);
}

#[test]
fn names_that_their_driver_cut_off_have_no_number() {
    expect(&[
        (
            "bnxt_en",
            "eno12399np0-TxRx-",
            "combined queue - eno12399np0",
        ),
        (
            "bnxt_en",
            "enp65s0f0np0-TxRx",
            "combined queue - enp65s0f0np0",
        ),
        (
            "bnxt_en",
            "enp129s0f0np0-TxR",
            "combined queue - enp129s0f0np0",
        ),
        (
            "bnxt_en",
            "enp129s0f0np0-TxRx-14",
            "combined queue 14 enp129s0f0np0",
        ),
        (
            "bnxt_en",
            "ens10f0np0-TxRx-0",
            "combined queue 0 ens10f0np0",
        ),
        ("bnxt_en", "eth0-TxRx-", "unknown"),
        ("tg3", "enp2s0f0np0-rx-", "rx rank - enp2s0f0np0"),
        ("tg3", "enp130s0f0-txrx", "combined rank - enp130s0f0"),
        ("tg3", "enp130s0f0-rx-1", "rx rank 1 enp130s0f0"),
        ("tg3", "enx001122334455", "combined plain - enx001122334455"),
        (
            "gve",
            "gve-ntfy-blk100@pci:0000:00:04.",
            "combined txthenrx 100 -",
        ),
    ]);
}

#[test]
fn roles_are_written_in_lower_case() {
    for role in [
        Role::Combined,
        Role::Rx,
        Role::Tx,
        Role::Rdma,
        Role::Control,
    ] {
        assert_eq!(serde_json::to_value(role).unwrap(), role.name());
        assert_eq!(
            serde_json::from_value::<Role>(role.name().into()).unwrap(),
            role
        );
    }
}

#[test]
fn odd_text_neither_panics_nor_leaves_the_name() {
    let odd = [
        "",
        "-",
        "{if}",
        "é",
        "\0",
        ":",
        "-TxRx-",
        "99999999999999999999",
    ];
    for (driver, action, _) in examples() {
        for at in (0..=action.len()).step_by(2) {
            for text in odd {
                let action = format!("{}{text}{}", &action[..at], &action[at..]);
                for driver in [driver, ""] {
                    if let Some(named) = classify(Some(driver), &action, &[]) {
                        assert!(
                            named
                                .interface
                                .is_none_or(|name| action.contains(name) && name.len() <= 15)
                        );
                    }
                }
            }
        }
    }
    let long = "-TxRx-0".repeat(2000) + &"a:0".repeat(2000);
    for (driver, ..) in examples() {
        assert_eq!(of(driver, &long), None, "{driver}");
    }
}
