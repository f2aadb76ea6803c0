//! A file that holds a CPU mask, and how wide the kernel prints it.

use std::sync::Arc;

use crate::cpuset::{CpuSet, CpuSetError, MaskWidth};

/// The text of a mask file, the CPUs in it and its width.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskFile {
    /// The text without white space at the ends. It is shared with the plan, since it is long on large machines.
    pub text: Arc<str>,
    pub cpus: CpuSet,
    /// How wide the kernel prints this file.
    pub width: MaskWidth,
}

impl MaskFile {
    /// Parses the text of a mask file.
    pub fn parse(text: &str) -> Result<Self, CpuSetError> {
        let cpus = CpuSet::parse_kernel_mask(text)?;
        let text: Arc<str> = text
            .trim_matches(|c: char| c.is_whitespace() || c == '\0')
            .into();
        let width = MaskWidth::of_valid(&text)
            .unwrap_or(MaskWidth::for_cpus(cpus.last().map_or(1, |last| last + 1)));
        Ok(Self { text, cpus, width })
    }
}
