//! Other tools than irqbalance that write affinities: the plan's notes on them, on copies of a shipped machine.

use crate::support::run::{MachineTree, good, nicpin};

#[test]
fn other_tools_that_write_affinities_are_named() {
    let conf = |profile: &str, text: &str| {
        (
            format!("/usr/lib/tuned/profiles/{profile}/tuned.conf"),
            text.to_owned(),
        )
    };
    let link = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let active = ("/etc/tuned/active_profile".to_owned(), "site".to_owned());
    let pid = (
        "/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs".to_owned(),
        "700\n".to_owned(),
    );
    let tuned = (
        "/proc/700/stat".to_owned(),
        format!("700 (tuned) S{}", " 1".repeat(49)),
    );
    let isolated = conf(
        "cpu-partitioning",
        "[main]\ninclude=site\n[scheduler]\nisolated_cores=${isolated_cores}\n",
    );
    for (files, code, values) in [
        (
            vec![
                pid.clone(),
                tuned.clone(),
                active.clone(),
                conf("site", "[main]\ninclude = cpu-partitioning"),
                isolated.clone(),
            ],
            "tuned-running",
            &["profile site,", "cpu-partitioning", "isolated_cores"][..],
        ),
        (
            vec![
                pid.clone(),
                tuned.clone(),
                active.clone(),
                (
                    "/etc/tuned/site/tuned.conf".to_owned(),
                    "[irq]\naffinity=2".to_owned(),
                ),
            ],
            "tuned-running",
            &["profile site,", "plugin irq"],
        ),
        // The tool does not run, or its profile leaves interrupts alone.
        (vec![active.clone(), conf("site", "[irq]")], "", &[]),
        (
            vec![
                pid.clone(),
                tuned.clone(),
                active.clone(),
                conf("site", "[sysctl]\nvm.swappiness=1"),
            ],
            "",
            &[],
        ),
        (
            vec![link(
                "/etc/systemd/network/10-net.link",
                "[Match]\nDriver=virtio_net\n[Link]\nIRQAffinityPolicy=spread",
            )],
            "link-irq-affinity",
            &["/etc/systemd/network/10-net.link", "=spread"],
        ),
        (
            vec![link(
                "/usr/lib/systemd/network/99-default.link.d/irq.conf",
                "[Link]\nIRQAffinityPolicy = single",
            )],
            "link-irq-affinity",
            &["99-default.link.d/irq.conf", "=single"],
        ),
        (
            vec![
                link(
                    "/etc/systemd/network/10-net.link",
                    "[Link]\nIRQAffinityPolicy=",
                ),
                link(
                    "/usr/lib/systemd/network/10-net.link",
                    "[Link]\nIRQAffinityPolicy=spread",
                ),
            ],
            "",
            &[],
        ),
        (
            vec![link(
                "/etc/systemd/network/20-rps.link",
                "[Link]\nReceivePacketSteeringCPUMask=0-3 6 ; all",
            )],
            "link-rps",
            &["20-rps.link", "CPUMask=0-3 6:", "RPS"],
        ),
        (
            vec![link("/usr/bin/google_set_multiqueue", "#!/bin/bash")],
            "cloud-script",
            &["/usr/bin/google_set_multiqueue", "XPS"],
        ),
        (
            vec![link("/usr/sbin/ecs_mq_rps_rfs", "#!/bin/bash")],
            "cloud-script",
            &["/usr/sbin/ecs_mq_rps_rfs", "RFS"],
        ),
    ] {
        let machine = MachineTree::of("two-node");
        for (path, text) in &files {
            machine.put(path, text);
        }
        let names = |text: &str| values.iter().all(|value| text.contains(value));
        let text = good(&machine, &["plan"]);
        assert!(names(&text), "{files:?}: {text}");
        let plan = machine.nicpin(&["plan", "--format", "json"]).json();
        let known = [
            "tuned-running",
            "link-irq-affinity",
            "link-rps",
            "cloud-script",
        ];
        let codes = plan["notes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|note| note["code"].as_str().unwrap());
        let codes: Vec<&str> = codes.filter(|code| known.contains(code)).collect();
        assert_eq!(
            codes,
            if code.is_empty() { vec![] } else { vec![code] },
            "{files:?}"
        );
        assert!(names(&good(&machine, &["apply"])));
        let archive = machine.path("/machine.tar.gz");
        // Without `-q` it says that it renames the cgroups of a service.
        good(
            &machine,
            &["capture", "-q", "-o", archive.to_str().unwrap()],
        );
        let captured = nicpin(&["plan", "--root", archive.to_str().unwrap()]);
        assert!(names(&captured.words()), "{}", captured.stdout);
    }
}
