//! How the table looked when it had just been made.
//!
//! nft writes a table differently from how it was given, and every release of it differs from the last. So what it lists
//! right after the table was made is the measure: who finds the same later knows that nobody has touched it.

use std::io;
use std::path::{Path, PathBuf};

use egret_hostmodel::Shape;
use serde::{Deserialize, Serialize};

use super::NftError;
use crate::file;

#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    shape: Shape,
    listing: String,
}

/// A file that says what the table looks like where it is as we made it.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    path: PathBuf,
}

impl Memory {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { path: folder.join("table.json") }
    }

    pub(crate) fn keep(&self, shape: &Shape, listing: &str) -> Result<(), NftError> {
        let remembered = Remembered { shape: shape.clone(), listing: listing.to_owned() };
        file::write(&self.path, &remembered).map_err(NftError::Memory)
    }

    pub(crate) fn forget(&self) -> Result<(), NftError> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(NftError::Memory(error)),
            _ => Ok(()),
        }
    }

    /// The shape of a table that is listed so; absent if nobody remembers, or it looked different.
    pub(crate) fn shape_of(&self, listing: &str) -> Option<Shape> {
        let remembered: Remembered = file::read(&self.path)?;
        (remembered.listing == listing).then_some(remembered.shape)
    }
}
