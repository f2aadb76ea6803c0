//! The JSON form of notes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::plan::note::Note;

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct WithText<'a> {
            #[serde(flatten, serialize_with = "Note::serialize")]
            data: &'a Note,
            text: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            fix: Option<String>,
        }
        WithText {
            data: self,
            text: format!("{self:#}"),
            fix: self.advice().map(|advice| advice.text),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Note {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Note::deserialize(deserializer)
    }
}
