//! Where the lines of records are on the disk. Memory holds only the place of each line, not the line, so that campaigns may be larger than
//! memory.

use super::line::{self, Key, key_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// File of a directory that a line is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum In {
    /// The finished one.
    Records,
    /// The one that grows.
    Unfinished,
}

/// The place of a line.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its file.
    pub file: In,
    /// Its offset, bytes.
    pub offset: u64,
    /// Its length without the newline, bytes.
    pub length: u32,
}

/// The places of lines by run.
#[derive(Debug, Default)]
pub struct Places {
    by_point: BTreeMap<String, BTreeMap<u64, Place>>,
    count: usize,
}

impl Places {
    /// Their number.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Puts a line in; the last one of a run counts.
    pub fn put(&mut self, (point, seed): Key, place: Place) {
        let before = match self.by_point.get_mut(&point) {
            Some(of_point) => of_point.insert(seed, place),
            None => self.by_point.entry(point).or_default().insert(seed, place),
        };
        self.count += usize::from(before.is_none());
    }

    /// Takes a line out.
    pub fn remove(&mut self, (point, seed): &Key) {
        let gone = self.by_point.get_mut(point).and_then(|of_point| of_point.remove(seed));
        self.count -= usize::from(gone.is_some());
    }

    /// Place of a run's line.
    pub fn get(&self, (point, seed): &Key) -> Option<Place> {
        self.by_point.get(point)?.get(seed).copied()
    }

    /// Those of a point, in the order of seeds.
    pub fn of_point(&self, point: &str) -> impl Iterator<Item = Place> {
        self.by_point.get(point).into_iter().flat_map(|of_point| of_point.values().copied())
    }

    /// Every seed of which there is a run, ascending.
    pub fn seeds(&self) -> Vec<u64> {
        let seeds: BTreeSet<u64> = self.by_point.values().flat_map(BTreeMap::keys).copied().collect();
        seeds.into_iter().collect()
    }
}

/// Reads a line without its newline.
pub fn read(mut file: &File, place: Place) -> io::Result<String> {
    let mut bytes = vec![0; place.length as usize];
    file.seek(SeekFrom::Start(place.offset))?;
    file.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("a record is damaged: it is no text"))
}

/// Goes through a file from line number `skipped`, from 0, on: `each` gets the offset of every whole line, and the line with
/// its key, or the number of the line, from 1, and what is wrong with it. A line without its end, which was being written
/// when the program ended, is left out.
pub fn scan(
    file: &File,
    skipped: usize,
    mut each: impl FnMut(u64, Result<(Key, &str), (usize, &'static str)>) -> io::Result<()>,
) -> io::Result<()> {
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(0))?;
    let (mut offset, mut number, mut bytes) = (0, 0, Vec::new());
    loop {
        bytes.clear();
        let length = reader.read_until(b'\n', &mut bytes)?;
        let Some(line) = bytes.strip_suffix(b"\n") else { return Ok(()) };
        number += 1;
        if number > skipped {
            let opened = std::str::from_utf8(line).map_err(|_| "is damaged: it is no text").and_then(|line| {
                let record = line::open(line)?;
                Ok((key_of(&record).ok_or("has no point and seed")?, line))
            });
            each(offset, opened.map_err(|why| (number, why)))?;
        }
        offset += length as u64;
    }
}
