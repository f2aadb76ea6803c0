//! A file that holds a mask of CPUs: what it says, and how wide the kernel prints it.

use std::sync::Arc;

use crate::cpuset::{CpuSet, CpuSetError, MaskWidth};

/// A mask file: its text, the set it means and its width.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskFile {
    /// What the file holds, without white space at the ends. Of a wide machine it is long, and the plan holds it, too.
    pub text: Arc<str>,
    /// The CPUs.
    pub cpus: CpuSet,
    /// How wide the kernel prints this file.
    pub width: MaskWidth,
}

impl MaskFile {
    /// Parses what a mask file holds.
    pub fn parse(text: &str) -> Result<Self, CpuSetError> {
        let cpus = CpuSet::parse_kernel_mask(text)?;
        let text: Arc<str> = text.trim_matches(|c: char| c.is_whitespace() || c == '\0').into();
        let width =
            MaskWidth::of_valid(&text).unwrap_or(MaskWidth::for_cpus(cpus.last().map_or(1, |last| last + 1)));
        Ok(Self { text, cpus, width })
    }
}
