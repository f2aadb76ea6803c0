//! The policy of a watcher: when its file becomes invalid, the last valid text stays in force.

use crate::commands::args::General;
use crate::commands::inputs::{CONFIG, Purpose, read_policy};
use crate::commands::journal::{self, Priority};
use crate::commands::policy::PolicyArgs;
use crate::watch::state::keep_policy;
use anyhow::{Context as _, Result};
use nicpin::machine::Program;
use nicpin::policy::Policy;
use nicpin::read::topology;
use nicpin::root::Root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(super) struct ValidPolicy<'a> {
    cli: &'a General,
    options: &'a PolicyArgs,
    observe: bool,
    /// The policy file, outside the root.
    pub(super) path: String,
    /// The last valid text; `None` where there was no file.
    text: Option<String>,
    /// The policy of it and of the options.
    policy: Policy,
    /// A copy of it, while the file is invalid.
    copy: Option<PathBuf>,
    /// What is wrong with the file.
    error: Option<String>,
}

impl<'a> ValidPolicy<'a> {
    pub(super) fn read(
        cli: &'a General,
        options: &'a PolicyArgs,
        observe: bool,
        root: &Root,
    ) -> Result<Self> {
        let path = cli.config.clone().unwrap_or_else(|| root.outside(CONFIG));
        let path = std::path::absolute(&path).with_context(|| path.display().to_string())?;
        let path = path.to_string_lossy().into_owned();
        let (text, policy) = valid(cli, options, observe, root)?;
        Ok(Self {
            cli,
            options,
            observe,
            path,
            text,
            policy,
            copy: None,
            error: None,
        })
    }

    /// Reads the file again. An invalid one is reported once.
    pub(super) fn refresh(&mut self, root: &Root) {
        match valid(self.cli, self.options, self.observe, root) {
            Ok((text, policy)) => {
                if text != self.text || self.error.is_some() {
                    let fields = [("NICPIN_POLICY", self.path.as_str())];
                    journal::log(
                        root,
                        Priority::Notice,
                        &format!("{}: the policy is in force", self.path),
                        &fields,
                    );
                }
                (self.text, self.copy, self.error) = (text, None, None);
                self.policy = policy;
            }
            Err(error) => {
                let error = format!("{error:#}");
                if self.error.as_ref() != Some(&error) {
                    let fields = [("NICPIN_POLICY", self.path.as_str())];
                    let text = format!("{error}; the policy before stays in force");
                    journal::log(root, Priority::Warning, &text, &fields);
                    self.error = Some(error);
                }
                if self.copy.is_none() {
                    // Without the copy a run fails on the file, and reports it.
                    self.copy = keep_policy(root, self.text.as_deref().unwrap_or_default()).ok();
                }
            }
        }
    }

    /// Whether runs leave out CPUs that cgroups have alone by an option: what runs on the machine may decide then, because
    /// each change leads to a run.
    pub(super) fn avoids_exclusive(&self) -> bool {
        !self.policy.decides_on_exclusive()
    }

    /// The programs whose CPUs are to be watched.
    pub(super) fn programs(&self) -> BTreeSet<Program> {
        self.policy.programs()
    }

    /// The policy file for runs, where it is not the usual one.
    pub(super) fn copy(&self) -> Option<&Path> {
        self.copy.as_deref()
    }
}

/// The text of the policy file, if it is valid on this machine, and the policy.
fn valid(
    cli: &General,
    options: &PolicyArgs,
    observe: bool,
    root: &Root,
) -> Result<(Option<String>, Policy)> {
    let purpose = if observe {
        Purpose::Look
    } else {
        Purpose::Write
    };
    let (policy, text) = read_policy(purpose, cli, root, options)?;
    policy.options.check(topology::read(root)?.possible)?;
    Ok((text, policy))
}
