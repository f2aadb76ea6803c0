//! nicpin's state files: JSON whose `schema` names the format and its version.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::plan::stored::Schema;
use crate::root::{FileError, Root, errno_words};

/// On a tmpfs: a boot brings the original settings back anyway.
pub const STATE_DIR: &str = "/run/nicpin";

pub struct StateFile {
    pub path: &'static str,
    pub schema: &'static str,
    pub what: &'static str,
    pub not_done: &'static str,
}

#[derive(Serialize)]
struct Versioned<'a, T> {
    schema: &'a str,
    #[serde(flatten)]
    value: &'a T,
}

impl StateFile {
    pub fn exists(&self, root: &Root) -> bool {
        root.exists(self.path)
    }

    pub fn load<T: DeserializeOwned>(&self, root: &Root) -> Result<Option<T>, FileError> {
        let Some(text) = root.read_state(self.path)? else {
            return Ok(None);
        };
        let error = |reason: String, fix| {
            let (what, not_done) = (self.what, self.not_done);
            let reason = format!("not {what} ({reason}); {not_done}; fix: {fix}");
            root.content_error(self.path, reason)
        };
        let away = "move the file away (what it says is lost) and run again";
        let invalid = |e: serde_json::Error| error(e.to_string(), away);
        let Schema { schema } = serde_json::from_str(&text).map_err(invalid)?;
        if schema != self.schema {
            // Otherwise another version's settings would be taken for original.
            let fix = "run the version of nicpin that wrote it, or move the file away";
            return Err(error(format!("its schema is {schema}"), fix));
        }
        serde_json::from_str(&text).map(Some).map_err(invalid)
    }

    pub fn save(&self, root: &Root, value: &impl Serialize) -> Result<(), FileError> {
        let schema = self.schema;
        serde_json::to_string_pretty(&Versioned { schema, value })
            .map_err(|error| root.io_error(self.path, error))
            .and_then(|text| root.replace_state(self.path, &(text + "\n")))
            .map_err(|error| self.save_error(error))
    }

    pub fn remove(&self, root: &Root) -> Result<(), FileError> {
        root.remove_state(self.path)
            .map_err(|error| self.save_error(error))
    }

    fn save_error(&self, error: FileError) -> FileError {
        let FileError::Io { path, answer } = error else {
            return error;
        };
        let fix = match answer.kind() {
            std::io::ErrorKind::StorageFull => "; fix: remove files to make room there",
            _ => "",
        };
        let reason = format!("{}; {}{fix}", errno_words(&answer), self.not_done);
        FileError::Content { path, reason }
    }
}
