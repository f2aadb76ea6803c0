//! The value of a write.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpuset::{CpuSet, MaskWidth};

/// The bytes of a write. Values are equal when their bytes are.
#[derive(Clone)]
pub struct WriteValue(Form);

#[derive(Clone)]
enum Form {
    Text(String),
    /// A mask that fits its width. The text is long on large machines and is made on demand.
    Mask(CpuSet, MaskWidth),
}

impl WriteValue {
    /// A mask of this width; `None` when a CPU does not fit.
    pub fn mask(cpus: &CpuSet, width: MaskWidth) -> Option<Self> {
        cpus.fits(width).then(|| Self(Form::Mask(cpus.clone(), width)))
    }

    pub fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Text(text) => Cow::Borrowed(text),
            Form::Mask(cpus, width) => Cow::Owned(cpus.to_mask(*width).unwrap_or_default()),
        }
    }
}

impl From<String> for WriteValue {
    fn from(text: String) -> Self {
        Self(Form::Text(text))
    }
}

impl PartialEq for WriteValue {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for WriteValue {}

impl fmt::Display for WriteValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text())
    }
}

impl fmt::Debug for WriteValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}

impl Serialize for WriteValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for WriteValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_its_text() {
        let cpus = CpuSet::parse_list("1,40").unwrap();
        let mask = WriteValue::mask(&cpus, MaskWidth::for_cpus(64)).unwrap();
        assert_eq!(mask.text(), "00000100,00000002");
        assert_eq!(mask, WriteValue::from("00000100,00000002".to_owned()));
        assert_eq!(serde_json::to_string(&mask).unwrap(), "\"00000100,00000002\"");
        assert_eq!(WriteValue::mask(&cpus, MaskWidth::for_cpus(40)), None);
    }
}
