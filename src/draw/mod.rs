//! `nicpin draw`: a machine as a picture.

pub mod picture;
pub mod svg;
