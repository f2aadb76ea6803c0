//! `nicpin draw`: a machine as a picture.

mod layout;
pub mod picture;
pub mod svg;
