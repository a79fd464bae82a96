//! Lines of records, in memory or in a file.

use serde_json::Value;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

/// Lines of records.
#[derive(Clone)]
pub enum Lines {
    /// In memory.
    Memory(Arc<Vec<String>>),
    /// In a file.
    File(Arc<PathBuf>),
}

impl Lines {
    /// Every line without its newline.
    pub fn iter(&self) -> io::Result<Box<dyn Iterator<Item = io::Result<String>> + Send>> {
        Ok(match self {
            Lines::Memory(lines) => {
                let lines = Arc::clone(lines);
                Box::new((0..lines.len()).map(move |number| Ok(lines[number].clone())))
            }
            Lines::File(path) => Box::new(BufReader::new(File::open(&**path)?).lines()),
        })
    }

    /// Every line as JSON.
    pub fn values(&self) -> io::Result<Vec<Value>> {
        self.iter()?.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
    }
}
