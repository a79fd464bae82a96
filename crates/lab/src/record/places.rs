//! Index of the lines of records on the disk. Memory holds the place of each line, but not the line
//! itself, so that a campaign may be larger than memory.

use super::line::{self, Head, Key, Observed};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// File of a directory that contains a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum In {
    /// The finished file.
    Records,
    /// The unfinished file, to which lines are appended.
    Unfinished,
}

/// Place of a line.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// File that contains the line.
    pub file: In,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Length without the newline, bytes.
    pub length: u32,
    /// Additional data that the record has.
    pub observed: Observed,
    /// True if the current scenario has another name for the record's scenario or point.
    pub is_renamed: bool,
}

/// Places of lines, by run.
#[derive(Debug, Default)]
pub struct Places {
    /// Number of each point.
    numbers: BTreeMap<String, u32>,
    /// Places, by the number of the point and the seed.
    by_run: BTreeMap<(u32, u64), Place>,
}

impl Places {
    /// Number of places.
    pub fn len(&self) -> usize {
        self.by_run.len()
    }

    /// Inserts the place of a run's line. It replaces an earlier place of the same run.
    pub fn put(&mut self, (point, seed): Key, place: Place) {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(point).or_insert(next);
        self.by_run.insert((number, seed), place);
    }

    /// Removes the place of a run's line.
    pub fn remove(&mut self, (point, seed): &Key) {
        if let Some(number) = self.numbers.get(point) {
            self.by_run.remove(&(*number, *seed));
        }
    }

    /// Returns the place of a run's line.
    pub fn get(&self, (point, seed): &Key) -> Option<Place> {
        self.by_run.get(&(*self.numbers.get(point)?, *seed)).copied()
    }

    /// Returns the places of a point with their seeds, in ascending order of seeds.
    pub fn of_point(&self, point: &str) -> impl Iterator<Item = (u64, Place)> {
        self.numbers.get(point).into_iter().flat_map(|number| self.of_number(*number))
    }

    /// Returns the points that have lines, in the order in which their first lines occur in the
    /// files.
    pub fn points(&self) -> Vec<&str> {
        let first = |number: u32| self.of_number(number).map(|(_, place)| (place.file, place.offset)).min();
        let mut points: Vec<_> =
            self.numbers.iter().filter_map(|(point, number)| Some((first(*number)?, point.as_str()))).collect();
        points.sort_unstable();
        points.into_iter().map(|(_, point)| point).collect()
    }

    /// Returns mutable references to all places in a file, in the order of the file.
    pub fn in_file(&mut self, file: In) -> Vec<&mut Place> {
        let all = self.by_run.values_mut();
        let mut places: Vec<&mut Place> = all.filter(|place| place.file == file).collect();
        places.sort_unstable_by_key(|place| place.offset);
        places
    }

    /// True if the current scenario has another name for the scenario or point of any line.
    pub fn any_renamed(&self) -> bool {
        self.by_run.values().any(|place| place.is_renamed)
    }

    fn of_number(&self, number: u32) -> impl Iterator<Item = (u64, Place)> {
        self.by_run.range((number, 0)..=(number, u64::MAX)).map(|((_, seed), place)| (*seed, *place))
    }
}

/// Reads a line without its newline.
pub fn read(mut file: &File, place: Place) -> io::Result<String> {
    let mut bytes = vec![0; place.length as usize];
    file.seek(SeekFrom::Start(place.offset))?;
    file.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("a record is damaged: it is not text"))
}

/// Complete line that was found in a file.
#[derive(Debug)]
pub struct Found {
    /// Key of the run.
    pub key: Key,
    /// Name of the scenario.
    pub scenario: String,
    /// Place of the line.
    pub place: Place,
}

/// Scans a file, from its line number `skipped` on (counted from 0). For every complete line,
/// `each` gets either the line's data, or the line number (counted from 1) and what is wrong with
/// the line. A last line without a newline is ignored: the program ended while it wrote that line.
pub fn scan(
    mut file: &File,
    within: In,
    skipped: usize,
    mut each: impl FnMut(Result<Found, (usize, &'static str)>) -> io::Result<()>,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::new(file);
    let (mut offset, mut number, mut bytes) = (0, 0, Vec::new());
    loop {
        bytes.clear();
        let length = reader.read_until(b'\n', &mut bytes)?;
        let Some(line) = bytes.strip_suffix(b"\n") else { return Ok(()) };
        number += 1;
        if number > skipped {
            let text = std::str::from_utf8(line).map_err(|_| "is damaged: it is not text");
            match text.and_then(line::head) {
                Err(why) => each(Err((number, why)))?,
                Ok(Head { scenario, key, observed }) => {
                    let place = Place { file: within, offset, length: line.len() as u32, observed, is_renamed: false };
                    each(Ok(Found { key, scenario, place }))?;
                }
            }
        }
        offset += length as u64;
    }
}
