//! nicpin puts the interrupts and packet steering of Linux network cards on the card's own NUMA node, and
//! proves that they are there.
//!
//! Data flows one way: a [`host::Root`] is read into a [`host::Host`]; [`plan::plan`] turns that and a
//! [`policy::Policy`] into a [`plan::Plan`], without looking at anything else; [`apply`] writes the plan and
//! reads it back; [`render`] turns values into text.

pub mod apply;
pub mod bandwidth;
pub mod binding;
pub mod cli;
pub mod commands;
pub mod compare;
pub mod cpuset;
pub mod host;
pub mod manual;
pub mod measure;
pub mod nodes;
pub mod picture;
pub mod plan;
pub mod policy;
pub mod render;
pub mod sample;
pub mod select;
mod shell;
pub mod status;
pub mod sys;
mod wording;
