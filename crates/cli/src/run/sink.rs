//! Output of the records of `meshpace run`: to standard output in the order of the campaign, and to
//! the page that is written at the end.

use super::{Format, Watchers};
use crate::output::{note, results};
use crate::runner::Told;
use meshpace_lab::campaign::{Campaign, InOrder, Run, Work};
use meshpace_lab::record::tally::Tally;
use meshpace_lab::record::{self, Record, csv, silence, summary, table};
use meshpace_lab::register::reproduction::Listener;
use meshpace_lab::session::{Observer, Session};
use serde_json::{Map, Value};
use std::io;
use std::sync::Arc;

/// Largest number of points in the table.
const SHOWN: usize = 200;
/// Largest number of sentences about flows that delivered nothing.
const SILENT: usize = 5;

/// Prints records.
pub struct Sink<'a> {
    format: Format,
    told: Told<'a>,
    watchers: Arc<Watchers>,
    /// Records of the points that the table shows, or of the point whose summary is printed next.
    table: Vec<Record>,
    /// Number of points whose records were processed.
    points: usize,
    /// Point of the last record.
    last: Option<Map<String, Value>>,
    /// Records so far, if the page needs them.
    pub shown: Option<Vec<Record>>,
    /// Flows that starved in the records so far.
    pub starved: Tally,
    /// Sentences about flows that delivered nothing, with the reasons.
    silent: Vec<String>,
    /// True if the CSV header must still be written.
    header: bool,
    /// Keys of the sweep, which are columns of CSV.
    keys: Vec<String>,
    /// Runs that wait until the runs before them have ended.
    order: InOrder<Run>,
    /// Destination of the results.
    pub reader: Reader,
    /// True if nothing is written until all runs are made, because the number of runs of a point is
    /// not known before.
    pub holds: bool,
}

/// Reader of standard output.
pub enum Reader {
    /// The runs are only printed. If the reader leaves, the command ends.
    Needed,
    /// The runs also go into files. They are completed even if the reader leaves.
    MayLeave,
    /// The reader was one that may leave, and it has left.
    Gone,
}

impl Reader {
    /// Writes `text`, unless the reader has left and was allowed to.
    pub fn take(&mut self, text: &str) -> io::Result<()> {
        if matches!(self, Reader::Gone) {
            return Ok(());
        }
        match results(text) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe && matches!(self, Reader::MayLeave) => {
                *self = Reader::Gone;
                Ok(())
            }
            written => written,
        }
    }
}

/// Parses the record in a line.
pub fn read(line: &str) -> io::Result<Record> {
    Record::from_line(line).map_err(|why| io::Error::other(format!("the record {why}")))
}

impl<'a> Sink<'a> {
    /// Creates a sink that prints in this format. `files` is true if the runs also go into files.
    pub fn new(format: Format, told: Told<'a>, watchers: Arc<Watchers>, files: bool) -> Sink<'a> {
        Sink {
            format,
            told,
            watchers,
            table: Vec::new(),
            points: 0,
            last: None,
            shown: None,
            starved: Tally::default(),
            silent: Vec::new(),
            header: true,
            keys: Vec::new(),
            order: InOrder::default(),
            reader: if files { Reader::MayLeave } else { Reader::Needed },
            holds: false,
        }
    }

    /// Accepts runs that have ended, and writes all records that are next in order.
    pub fn put(&mut self, session: &mut Session, runs: &[Run]) -> io::Result<()> {
        for run in runs {
            self.order.put(run.index, *run);
            while let Some(next) = self.order.next() {
                self.write(session, next)?;
            }
        }
        Ok(())
    }

    /// Writes the record of the next run in order, or keeps it for the table or the summary.
    fn write(&mut self, session: &mut Session, run: Run) -> io::Result<()> {
        // A run that failed has no record.
        let Some(line) = session.take(run)? else { return Ok(()) };
        let record = read(&line)?;
        self.starved.add(&record);
        if let Some(shown) = &mut self.shown {
            shown.push(record.clone());
        }
        match self.format {
            Format::Json => self.reader.take(&(line + "\n"))?,
            Format::Csv => {
                let header = std::mem::take(&mut self.header);
                if header {
                    self.keys = session.campaign().swept();
                }
                self.reader.take(&csv::rows(&record, &self.keys, header)?)?;
            }
            Format::Table => {
                self.enter(&record);
                if self.points <= SHOWN {
                    self.table.push(record);
                }
            }
            Format::Summary => {
                if self.enter(&record) {
                    self.summarize()?;
                }
                self.table.push(record);
            }
        }
        Ok(())
    }

    /// Counts points. Returns true if the record belongs to another point than the record before
    /// it.
    fn enter(&mut self, record: &Record) -> bool {
        let is_new = self.last.as_ref() != Some(&record.point);
        if is_new {
            self.points += 1;
            self.last = Some(record.point.clone());
        }
        is_new
    }

    /// Writes the summary of the last point.
    fn summarize(&mut self) -> io::Result<()> {
        self.reader.take(&summary::render(&std::mem::take(&mut self.table)))
    }

    /// Writes the output that follows the last record.
    pub fn end(&mut self) -> io::Result<()> {
        match self.format {
            Format::Json | Format::Csv => Ok(()),
            Format::Summary => self.summarize(),
            Format::Table => {
                let left_out = self.points.saturating_sub(SHOWN);
                self.reader.take(&table::render_first(&self.table, &self.starved, left_out))
            }
        }
    }

    fn note_silent(&mut self, campaign: &Campaign, run: Run, record: &Record) {
        let room = SILENT - self.silent.len();
        if room == 0 || record.flows.iter().all(|flow| flow.delivered_bytes != Some(0)) {
            return;
        }
        let Ok(point) = campaign.point(run) else { return };
        let Ok(drawn) = point.drawn(record.seed) else { return };
        let sentences = silence::of(&drawn, record).into_iter().take(room);
        let values = record::values(&record.point).join(", ");
        let place = if values.is_empty() { String::new() } else { format!(" at {values}") };
        self.silent.extend(sentences.map(|sentence| format!("seed {}{place}: {sentence}", record.seed)));
    }

    /// Reports the flows that delivered nothing.
    pub fn tell_silent(&self) {
        self.silent.iter().for_each(|sentence| note(sentence));
    }
}

impl Observer for Sink<'_> {
    fn on_made(&mut self, campaign: &Campaign, made: &[(Run, Result<Record, String>)]) -> io::Result<()> {
        self.told.on_made(campaign, made)?;
        if let Some(failure) = self.watchers.failure() {
            return Err(io::Error::other(failure));
        }
        for (run, result) in made {
            if let Ok(record) = result {
                self.note_silent(campaign, *run, record);
            }
        }
        Ok(())
    }

    fn on_kept(&mut self, session: &mut Session, runs: &[Run], work: Work) -> io::Result<()> {
        let progress = self.told.0;
        if !self.holds {
            progress.suspend(|| self.put(session, runs))?;
        }
        self.told.on_kept(session, runs, work)
    }

    fn on_idle(&mut self) {
        self.told.on_idle();
    }
}

impl Listener for Sink<'_> {
    fn on_known(&mut self, work: Work) {
        self.told.on_known(work);
    }

    fn on_more(&mut self, work: Work) {
        self.told.on_more(work);
    }

    fn say(&mut self, sentence: &str) {
        self.told.say(sentence);
    }
}
