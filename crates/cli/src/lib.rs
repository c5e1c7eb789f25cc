//! The commands of `egret`.

pub mod input;
