//! Records as JSON, one per line, in memory or in a file.

use meshpace_lab::record::Record;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

/// Records as JSON, one per line.
#[derive(Clone)]
pub enum Lines {
    /// Lines in memory.
    Memory(Arc<Vec<String>>),
    /// Lines in a file.
    File(Arc<PathBuf>),
}

impl Lines {
    /// Returns the lines, without their newlines. Each call opens the file again. A line that
    /// cannot be read is an error.
    pub fn iter(&self) -> io::Result<Box<dyn Iterator<Item = io::Result<String>> + Send>> {
        Ok(match self {
            Lines::Memory(lines) => {
                let lines = Arc::clone(lines);
                Box::new((0..lines.len()).map(move |index| Ok(lines[index].clone())))
            }
            Lines::File(path) => Box::new(BufReader::new(File::open(&**path)?).lines()),
        })
    }

    /// Parses the record of every line.
    pub fn records(&self) -> io::Result<Vec<Record>> {
        self.iter()?.map(|line| Ok(Record::read(&line?)?)).collect()
    }
}
