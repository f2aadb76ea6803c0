#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026 The nicpin authors
# MIT License (see https://opensource.org/licenses/MIT)

"""Brings a machine into the state that nicpin plans, or back; all decisions are nicpin's own."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nicpin
short_description: Put interrupts and packet steering of network cards on their own NUMA node
version_added: "0.1.0"
description:
  - Runs C(nicpin apply) or C(nicpin restore) on the managed machine, and writes its policy.
  - Fails if an interface is unknown or cannot meet the policy; that one stays as it is, all others are written.
  - C(nicpin) has to be installed there; the role P(nicpin.nicpin.nicpin#role) does that.
author:
  - The nicpin authors (@nicpin)
options:
  state:
    description:
      - V(applied) writes what C(nicpin plan) prints, and the O(policy) before that.
      - V(restored) restores the settings that the first apply found.
      - V(configured) only writes the O(policy), for machines on which a unit applies it at boot.
    type: str
    choices: [applied, restored, configured]
    default: applied
  interfaces:
    description:
      - Selectors as C(nicpin) takes them, for example V(eth2), V(ens*), V(driver:mlx5_core) or V(node:1).
      - Without any, all physical interfaces that are up or have queue IRQs.
    type: list
    elements: str
    default: []
  policy:
    description:
      - The text of the policy file, in TOML.
      - A policy that C(nicpin) does not accept is not written, and nothing else is.
    type: str
  config:
    description: The policy file, which O(policy) replaces.
    type: path
    default: /etc/nicpin.toml
  irqbalance:
    description: What is done about a running irqbalance, in place of what the policy says.
    type: str
    choices: [ban, stop, ignore, refuse]
  atomic:
    description: Whether all writes are restored when one of them fails.
    type: bool
    default: false
  if_present:
    description: Whether a machine without such interfaces is no failure.
    type: bool
    default: false
  root:
    description: The tree to read and write, in place of the machine itself. O(config) is not below it.
    type: path
    default: /
  executable:
    description: The program, if it is not in C(PATH).
    type: path
attributes:
  check_mode:
    description: Runs C(nicpin plan) or C(nicpin restore --dry-run), which write nothing.
    support: full
  diff_mode:
    description: Shows each file with its text before and after.
    support: full
notes:
  - In check mode on a machine on which C(nicpin) is not installed, the module reports a change and RV(msg) says that the
    writes are not known yet.
"""

EXAMPLES = r"""
- name: Keep the work of all network cards on their own nodes
  nicpin.nicpin.nicpin:

- name: The same, with four cores a node for interrupts
  nicpin.nicpin.nicpin:
    policy: |
      [defaults]
      irq-cores = 4

- name: Only the cards of one driver, all or nothing
  nicpin.nicpin.nicpin:
    interfaces: ["driver:mlx5_core"]
    atomic: true

- name: Restore what was there before the first apply
  nicpin.nicpin.nicpin:
    state: restored
"""

RETURN = r"""
msg:
  description: What was changed, or why it could not be, in words.
  returned: always
  type: str
  sample: "12 of 24 settings written"
plan_hash:
  description: The hash of the plan, equal for equal plans on machines of one class.
  returned: O(state=applied)
  type: str
hardware_class:
  description: The hardware class of the machine.
  returned: O(state=applied), if nicpin reports one
  type: str
state:
  description: The worst state of all interfaces; in check mode the current one.
  returned: O(state=applied)
  type: str
  sample: unproven
states:
  description: The state of each interface; in check mode the current one.
  returned: O(state=applied)
  type: dict
  sample: {"eth2": "unproven"}
check:
  description: The report of C(nicpin check --json), which C(nicpin fleet) reads from the results of many hosts.
  returned: O(state=applied)
  type: dict
counts:
  description: How many settings were changed, were as planned already, and so on, as C(nicpin apply) counts them.
  returned: O(state=applied) or O(state=restored), not in check mode
  type: dict
  sample: {"changed": 12, "already": 12, "refused": 0}
writes:
  description: Paths of the settings that were written, or would be in check mode.
  returned: O(state=applied) or O(state=restored)
  type: list
  elements: str
"""

import json
import os
import tempfile

from ansible.module_utils.basic import AnsibleModule

COUNTS = ("changed", "already", "managed", "refused", "vanished", "pending", "staying")
ERROR = "nicpin.error/1"


class Nicpin:
    """The program, with the options that all of its commands take."""

    def __init__(self, module: AnsibleModule, executable: str, config: str | None) -> None:
        self.module = module
        self.common = [executable, "--root", module.params["root"]]
        self.config = ["--config", config] if config else []
        self.select = list(module.params["interfaces"])
        if module.params["if_present"]:
            self.select.append("--if-present")
        self.irqbalance = []
        if module.params["irqbalance"]:
            self.irqbalance = ["--irqbalance", module.params["irqbalance"]]

    def report(self, command: str, *options: str, accept: tuple[int, ...] = (0,)) -> tuple[int, dict]:
        """Exit code and JSON report of a command; the module fails with nicpin's words for other codes and for errors."""
        status, out, err = self.module.run_command(self.common + [command, "--json", *options])
        report: dict = {}
        if out.strip():
            try:
                report = json.loads(out)
            except ValueError:
                self.module.fail_json(msg=f"nicpin {command} gave no JSON: {out.strip()[:200]}")
        if status not in accept or (status != 0 and report.get("schema", ERROR) == ERROR):
            words = err.strip() or why_failed(report.get("refusals", report)) or f"status {status}"
            self.module.fail_json(msg=f"nicpin {command} failed: {words}", rc=status)
        return status, report

    def plan(self) -> tuple[int, dict]:
        """The plan, also (1) where it leaves an interface out that is unknown or for which the policy cannot be met."""
        return self.report("plan", *self.config, *self.irqbalance, *self.select, accept=(0, 1))

    def check(self) -> dict:
        """The states; a machine that differs from its plan (2) or whose state is unknown (1) has them, too."""
        return self.report("check", *self.config, *self.select, accept=(0, 1, 2))[1]


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def why_failed(report: dict) -> str:
    """The reasons that a report of apply, check or restore gives for what failed; equal ones are given once."""
    reasons: dict[str, list[str]] = {}
    for result in report.get("results") or []:
        if result.get("outcome") in ("refused", "vanished"):
            reasons.setdefault(result.get("detail") or result["outcome"], []).append(result["path"])
    words = [
        f"{paths[0]}: {detail}" if len(paths) == 1 else f"{paths[0]} and {count(len(paths) - 1, 'other')}: {detail}"
        for detail, paths in reasons.items()
    ]
    words += [f"{one['interface']}: {one['refused']}" for one in report.get("channels") or [] if one.get("refused")]
    irqbalance = report.get("irqbalance") or {}
    if irqbalance.get("done") == "refused":
        words.append(f"irqbalance: {irqbalance.get('detail')}")
    words += [f"{one['interface']}: {one['text']}" for one in report.get("unknown") or []]
    return "; ".join(words)


def file_diff(path: str, before: str, after: str) -> dict:
    return {"before_header": path, "after_header": path, "before": before, "after": after}


def write_diffs(writes: list[dict], before: str) -> list[dict]:
    return [file_diff(one["path"], str(one.get(before) or "").strip() + "\n", one["value"] + "\n") for one in writes]


def channel_diffs(changes: list[dict]) -> list[dict]:
    """What `ethtool -L` would change, as lines."""
    def lines(channels: dict) -> str:
        return "".join(f"{key} {number}\n" for key, number in sorted(channels.items()) if not key.startswith("max_"))

    return [file_diff(f"channels of {one['interface']}", lines(one["current"]), lines(one["wanted"])) for one in changes]


def read_text(path: str) -> str:
    """The text of a file; empty if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def write_policy(module: AnsibleModule, text: str) -> str:
    """A temporary file with the policy, which the module removes when it ends."""
    descriptor, path = tempfile.mkstemp(prefix="nicpin-", suffix=".toml", dir=module.tmpdir)
    module.add_cleanup_file(path)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def restored(module: AnsibleModule, nicpin: Nicpin) -> dict:
    # What cannot be restored (1) is no reason not to restore the rest.
    accept = (0,) if module.check_mode else (0, 1)
    status, planned = nicpin.report("restore", "--dry-run", accept=accept)
    diff = write_diffs(planned["writes"], "current")
    writes = [one["path"] for one in planned["writes"]]
    number = len(writes) + len(planned["channels"]) + int(planned["irqbalance"])
    if module.check_mode or (number == 0 and status == 0):
        words = f"{count(number, 'setting')} would be restored" if number else "nothing to restore"
        return {"changed": number > 0, "msg": words, "writes": writes, "diff": diff}
    report = nicpin.report("restore")[1]
    counts = {key: report[key] for key in COUNTS if key in report}
    words = f"{count(report['changed'], 'setting')} restored"
    return {"changed": report["changed"] > 0, "msg": words, "counts": counts, "writes": writes, "diff": diff}


def irqbalance_change(nicpin: Nicpin, plan: dict) -> str:
    """What apply would ask of irqbalance, in words; empty if it does not run or is to be ignored, or knows already."""
    action = (plan.get("irqbalance") or {}).get("action", "ignore")
    if action not in ("ban", "stop"):
        return ""
    status = nicpin.report("status", "--seconds", "0", *nicpin.config, *nicpin.select, accept=(0, 1))[1]
    knows = (status.get("irqbalance") or {}).get("state") in ("banned", "asks-nicpin")
    if action == "ban" and knows:
        return ""
    return "irqbalance would be stopped" if action == "stop" else "irqbalance would be asked to leave the planned IRQs alone"


def applied(module: AnsibleModule, nicpin: Nicpin) -> dict:
    status, plan = nicpin.plan()
    writes, channels = plan["writes"], plan["channels"]
    result = {"plan_hash": plan["hash"], "writes": [one["path"] for one in writes]}
    if plan.get("class"):
        result["hardware_class"] = plan["class"]
    number = len(writes) + len(channels)
    if module.check_mode:
        asked = irqbalance_change(nicpin, plan)
        result["changed"] = number > 0 or asked != ""
        words = (
            f"{count(number, 'setting')} would be written, {plan['unchanged']} already as planned" if number
            else f"all {count(plan['unchanged'], 'setting')} as planned"
        )
        result["msg"] = f"{words}; {asked}" if asked else words
        result["diff"] = channel_diffs(channels) + write_diffs(writes, "current")
    else:
        options = ["--atomic"] if module.params["atomic"] else []
        status, report = nicpin.report("apply", *nicpin.config, *nicpin.irqbalance, *nicpin.select, *options, accept=(0, 1))
        done = [one for one in report["results"] if one["outcome"] in ("changed", "pending")]
        result["counts"] = {key: report[key] for key in COUNTS if key in report}
        result["writes"] = [one["path"] for one in done]
        result["diff"] = channel_diffs(channels) + write_diffs(done, "was")
        result["changed"] = report["changed"] > 0
        result["plan_hash"] = report["hash"]
        total = report["changed"] + report["already"]
        result["msg"] = (
            f"{report['changed']} of {count(total, 'setting')} written" if report["changed"]
            else f"all {count(total, 'setting')} as planned"
        )
    check = nicpin.check()
    if status != 0:
        words = why_failed(check if module.check_mode else report) or "see counts"
        written = f"; {result['msg']}" if module.check_mode else ""
        result["msg"] = f"not in the planned state: {words}{written}"
        result["failed"] = True
    result["check"] = check
    result["state"] = check.get("state")
    result["states"] = {one["name"]: one["state"] for one in check.get("interfaces", [])}
    return result


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["applied", "restored", "configured"], "default": "applied"},
            "interfaces": {"type": "list", "elements": "str", "default": []},
            "policy": {"type": "str"},
            "config": {"type": "path", "default": "/etc/nicpin.toml"},
            "irqbalance": {"type": "str", "choices": ["ban", "stop", "ignore", "refuse"]},
            "atomic": {"type": "bool", "default": False},
            "if_present": {"type": "bool", "default": False},
            "root": {"type": "path", "default": "/"},
            "executable": {"type": "path"},
        },
        required_if=[("state", "configured", ["policy"])],
        supports_check_mode=True,
    )
    params = module.params
    config: str = params["config"]
    if params["state"] == "restored" and params["policy"] is not None:
        module.fail_json(msg="state=restored takes no policy")
    before = read_text(config)
    policy: str = before if params["policy"] is None else params["policy"]
    policy_changes = policy != before

    executable: str | None = params["executable"] or module.get_bin_path("nicpin")
    if executable is None or not os.access(executable, os.X_OK):
        what = executable or "nicpin"
        if module.check_mode:
            module.exit_json(
                changed=params["state"] != "restored",
                msg=f"{what} is not installed: what would be written is not known until it is",
                writes=[],
                diff=[file_diff(config, before, policy)] if policy_changes else [],
            )
        module.fail_json(msg=f"{what} is not installed; the role nicpin.nicpin.nicpin installs it")

    used = config if os.path.exists(config) else None
    if policy_changes:
        # Nothing is written with a policy that nicpin does not accept; one that cannot be met here (1) has a plan, too.
        used = write_policy(module, policy)
        Nicpin(module, executable, used).report("plan", "--config", used, "--if-present", accept=(0, 1))
    if policy_changes and not module.check_mode:
        module.atomic_move(used, config)
        module.set_mode_if_different(config, "0644", False)
        used = config
    nicpin = Nicpin(module, executable, used)
    result: dict = {"changed": False, "msg": "the policy is as wanted", "diff": []}
    if params["state"] == "restored":
        result = restored(module, nicpin)
    elif params["state"] == "applied":
        result = applied(module, nicpin)
    if policy_changes:
        result["changed"] = True
        result["diff"] = [file_diff(config, before, policy), *result["diff"]]
        words = "the policy would be replaced" if module.check_mode else "the policy was replaced"
        result["msg"] = words if params["state"] == "configured" else f"{words}; {result['msg']}"
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
