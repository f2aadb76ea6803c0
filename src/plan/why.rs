//! The reason for the planned CPUs of a vector.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// The reason in words: first what decided, then what else is so.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Why {
    text: String,
    /// The bytes of the text that say what decided.
    decided: usize,
}

impl Why {
    pub(crate) fn new(decided: impl Into<String>, more: &str) -> Self {
        let decided = decided.into();
        Self {
            decided: decided.len(),
            text: decided + more,
        }
    }

    #[doc(hidden)]
    pub fn decided(&self) -> &str {
        &self.text[..self.decided]
    }
}

/// A stored plan has the text alone.
impl PartialEq for Why {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Deref for Why {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl From<String> for Why {
    fn from(text: String) -> Self {
        Self::new(text, "")
    }
}

impl From<Why> for String {
    fn from(why: Why) -> Self {
        why.text
    }
}
