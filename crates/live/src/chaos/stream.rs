//! Application at one end of a stream, which is a connection or a stream of a tunnel. It writes the
//! planned bytes, and compares what it reads with the expected bytes.

use super::plan::Habits;
use meshpace_core::Time;
use meshpace_session::content::fill;

/// Maximum number of bytes that are written at once.
const CHUNK: u64 = 4096;

/// How a stream has ended for its application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The stream has not ended.
    None,
    /// All data have arrived in both directions, as far as this end knows.
    Well,
    /// The stream has failed with this error.
    Failed(String),
}

/// Result of a read.
pub(crate) enum Got {
    Bytes(usize),
    End,
    Nothing,
}

/// One end of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    /// Numbers from which the bytes are derived: those of the direction written and of the
    /// direction read.
    contents: [u64; 2],
    pub(crate) habits: Habits,
    pub(crate) written: u64,
    /// Precomputed bytes and their offset. They are kept so that they need not be computed again if
    /// only some of them are accepted.
    ahead: (u64, Vec<u8>),
    /// True once the application has closed its direction.
    pub(crate) closed: bool,
    pub(crate) read: u64,
    /// True once the application has read the end of the stream.
    pub(crate) saw_end: bool,
    pub(crate) ending: Ending,
    /// True if the application has aborted the stream before its end.
    pub(crate) aborted: bool,
    /// True if the application's process has ended.
    pub(crate) killed: bool,
    /// True if bytes that were read differ from the expected bytes.
    pub(crate) wrong: bool,
}

impl Application {
    /// Creates the end that has opened the stream `name`, or the other end.
    pub(crate) fn new(name: u64, opens: bool, habits: Habits) -> Application {
        let [ours, theirs] = [opens, !opens].map(|ours| name.wrapping_mul(2) ^ u64::from(ours));
        Application {
            contents: [ours, theirs],
            habits,
            written: 0,
            ahead: (0, Vec::new()),
            closed: false,
            read: 0,
            saw_end: false,
            ending: Ending::None,
            aborted: false,
            killed: false,
            wrong: false,
        }
    }

    /// Returns a copy for error messages, without the precomputed bytes.
    pub(crate) fn told(&self) -> Application {
        Application { ahead: Default::default(), ..self.clone() }
    }

    /// Writes what is due at `now`. `put` accepts some of the bytes and returns their number.
    /// Returns true if anything was written.
    pub(crate) fn write(&mut self, now: Time, mut put: impl FnMut(&[u8]) -> usize) -> bool {
        let before = self.written;
        let until = self.habits.by(now);
        while self.written < until {
            let (start, bytes) = &mut self.ahead;
            if self.written >= *start + bytes.len() as u64 {
                *start = self.written;
                bytes.resize((until - self.written).min(CHUNK) as usize, 0);
                fill(self.contents[0], self.written, bytes);
            }
            let left = &bytes[(self.written - *start) as usize..];
            let taken = put(left);
            self.written += taken as u64;
            if taken < left.len() {
                break;
            }
        }
        self.written > before
    }

    /// True if everything that is due at `now` has been written.
    fn has_done(&self, now: Time) -> bool {
        self.written == self.habits.by(now) && self.closed == self.has_written_all()
    }

    /// True if the application will write more later.
    pub(crate) fn goes_on(&self, now: Time) -> bool {
        self.ending == Ending::None && self.habits.after(now) != Time::NEVER
    }

    /// True if the application has written everything.
    pub(crate) fn has_written_all(&self) -> bool {
        self.written == self.habits.all()
    }

    /// Reads everything that is available. Returns true if anything was read.
    pub(crate) fn read(&mut self, mut get: impl FnMut(&mut [u8]) -> Got) -> bool {
        let (mut into, mut expected) = ([0; 2048], [0; 2048]);
        let mut acted = false;
        while !self.saw_end {
            match get(&mut into) {
                Got::Nothing => break,
                Got::End => self.saw_end = true,
                Got::Bytes(length) => {
                    let expected = &mut expected[..length];
                    fill(self.contents[1], self.read, expected);
                    self.wrong |= into[..length] != *expected;
                    self.read += length as u64;
                }
            }
            acted = true;
        }
        acted
    }
}

/// True if everything that both ends have written has arrived and nothing more is due by `now`, or
/// if the stream has failed.
pub(crate) fn rests(now: Time, ends: [Option<&Application>; 2]) -> bool {
    if ends.into_iter().flatten().any(|one| matches!(one.ending, Ending::Failed(_))) {
        return true;
    }
    let [Some(one), Some(other)] = ends else { return false };
    let has = |own: &Application, peer: &Application| {
        own.has_done(now) && own.read == peer.written && own.saw_end == peer.closed
    };
    has(one, other) && has(other, one)
}

/// Checks the invariants of both ends of a stream that has ended. The first end is the one that
/// opened it. The second end may not exist.
///
/// # Errors
///
/// The invariant that is violated.
pub(crate) fn compare(ends: [Option<&Application>; 2]) -> Result<(), &'static str> {
    for (own, peer) in [(ends[0], ends[1]), (ends[1], ends[0])] {
        let Some(own) = own else { continue };
        if own.wrong {
            return Err("every byte is that of the stream, once and in order");
        }
        let written = peer.map_or(0, |peer| peer.written);
        if own.read > written {
            return Err("nothing is read that was not written");
        }
        if own.saw_end && !peer.is_some_and(|peer| peer.closed && peer.written == own.read) {
            return Err("the end of a stream is where its writer closed it");
        }
        // An application may abort after all data of both directions have arrived, without having
        // read them. It learns nothing more, and its peer was told that everything has arrived.
        let has_let_go = own.aborted && peer.is_some_and(|peer| peer.ending == Ending::Well);
        if own.ending == Ending::None && !own.killed && !has_let_go {
            return Err("a stream that is over is so at both ends");
        }
        if own.ending == Ending::Well {
            let has_arrived = peer.is_some_and(|peer| peer.killed || peer.aborted || peer.read == own.written);
            if !own.saw_end || !has_arrived {
                return Err("who is told that all is well has read all, and so has its peer");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: u64, opens: bool) -> Application {
        Application::new(7, opens, Habits { bursts: vec![(Time::ZERO, bytes)] })
    }

    /// Two ends between which everything has passed.
    fn whole() -> [Application; 2] {
        let mut ends = [of(5000, true), of(300, false)];
        let mut sent: [Vec<u8>; 2] = Default::default();
        for (end, sent) in ends.iter_mut().zip(&mut sent) {
            assert!(end.write(Time::ZERO, |bytes| {
                sent.extend_from_slice(bytes);
                bytes.len()
            }));
            end.closed = true;
        }
        sent.reverse();
        for (end, mut sent) in ends.iter_mut().zip(sent) {
            end.read(|into| {
                let length = sent.len().min(into.len());
                into[..length].copy_from_slice(&sent[..length]);
                sent.drain(..length);
                if length > 0 { Got::Bytes(length) } else { Got::End }
            });
            end.ending = Ending::Well;
        }
        ends
    }

    fn compared(change: impl FnOnce(&mut [Application; 2])) -> Result<(), &'static str> {
        let mut ends = whole();
        change(&mut ends);
        compare([Some(&ends[0]), Some(&ends[1])])
    }

    #[test]
    fn what_is_broken_is_found() {
        assert_eq!(compared(|_| {}), Ok(()));
        assert!(compared(|ends| ends[0].wrong = true).is_err());
        assert!(compared(|ends| ends[1].read += 1).is_err(), "a byte more");
        assert!(compared(|ends| ends[1].read -= 1).is_err(), "a byte less");
        assert!(compared(|ends| ends[1].closed = false).is_err(), "an end that nobody has said");
        assert!(compared(|ends| ends[1].ending = Ending::None).is_err(), "one does not hear of it");
        let failed = |ends: &mut [Application; 2]| {
            ends[1] =
                Application { ending: Ending::Failed("reset".into()), saw_end: false, read: 400, ..ends[1].clone() };
        };
        assert!(compared(failed).is_err(), "the other one believes that all is well");
        assert!(compare([Some(&whole()[0]), None]).is_err());
        let lets_go = |ends: &mut [Application; 2], peer: Ending| {
            ends[0] = Application { ending: Ending::None, saw_end: false, aborted: true, read: 100, ..ends[0].clone() };
            ends[1].ending = peer;
        };
        assert_eq!(compared(|ends| lets_go(ends, Ending::Well)), Ok(()), "let go once all had arrived");
        assert!(compared(|ends| lets_go(ends, Ending::None)).is_err(), "and the peer hears nothing");
    }
}
