//! The end of one stream of a session, as a tunnel reads and writes it.

use super::flow::Class;
use super::flows::Flow;
use super::link::{Link, Place, State};
use super::machine::{Got, Phase};
use super::sink::Sink;
use crate::Clock;
use crate::tunnel::Refusal;
use crate::tunnel::carried_by::CarriedBy;
use std::io;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};

/// One stream. Dropping it breaks off what is not over.
#[derive(Debug)]
pub(in crate::tunnel) struct Stream {
    link: Link,
    number: u32,
    news: Arc<Condvar>,
}

fn broken_off() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the far end has broken the stream off")
}

impl Link {
    /// Begins the session, on a thread of its own. `asked` is told of streams that the peer wants to be connected, `flows` of
    /// flows of datagrams that it has opened, `over` of the session's end.
    ///
    /// # Errors
    ///
    /// No thread can be had.
    pub(in crate::tunnel) fn run(
        &self,
        mut asked: impl FnMut(Stream, String) + Send + 'static,
        mut flows: impl FnMut(Flow, Class, String) -> Option<Arc<dyn Sink>> + Send + 'static,
        over: impl FnOnce(&io::Error) + Send + 'static,
    ) -> io::Result<()> {
        let link = self.clone();
        self.begin(
            move |place, target| asked(Stream::new(link.clone(), place), target),
            move |link| link.pass_on(&mut flows),
            over,
        )
    }

    /// Opens a stream to a target.
    ///
    /// # Errors
    ///
    /// The session is over, or has too many streams.
    pub(in crate::tunnel) fn open(&self, target: &str) -> io::Result<Stream> {
        self.place(target).map(|place| Stream::new(self.clone(), place))
    }
}

impl Stream {
    fn new(link: Link, (number, news): Place) -> Stream {
        Stream { link, number, news }
    }

    /// What carries it.
    pub(in crate::tunnel) fn carried_by(&self) -> CarriedBy {
        self.link.carried_by()
    }

    /// The session it is in.
    pub(in crate::tunnel) fn link(&self) -> &Link {
        &self.link
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.news.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the far end has connected it; if the session `may_be_dead`, only until the far end seems to have begun anew.
    ///
    /// # Errors
    ///
    /// Why it has not, as far as it says so, and the error.
    pub(in crate::tunnel) fn wait_for_answer(&self, may_be_dead: bool) -> Result<(), (Refusal, io::Error)> {
        let unreachable = |error| (Refusal::Unreachable, error);
        let mut state = self.link.enter().map_err(unreachable)?;
        loop {
            match state.session.phase(self.number) {
                Phase::Open => return Ok(()),
                Phase::Refused(code) => {
                    let refusal = Refusal::of(code);
                    return Err((refusal, io::Error::other(refusal.to_string())));
                }
                Phase::Reset => return Err(unreachable(broken_off())),
                Phase::Opening => {
                    state.check().map_err(unreachable)?;
                    if may_be_dead && self.link.is_doubted() {
                        return Err(unreachable(io::Error::other("the far end seems to have begun anew")));
                    }
                    state = self.wait(state);
                }
            }
        }
    }

    /// Answers the far end, which has asked for it: connected, or why not.
    pub(in crate::tunnel) fn answer(&self, code: u8) {
        let mut state = self.link.look();
        state.session.answer(self.number, code);
        self.link.hand_over(&mut state);
    }

    /// Waits for bytes and reads them; 0 at the end.
    ///
    /// # Errors
    ///
    /// It was broken off, or the session is over.
    pub(in crate::tunnel) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.link.look();
        loop {
            match state.session.read(self.number, into).map_err(|_| broken_off())? {
                Got::Bytes(length) => {
                    // The credit for more.
                    self.link.hand_over(&mut state);
                    return Ok(length);
                }
                Got::End => return Ok(0),
                Got::Nothing => state.check()?,
            }
            state = self.wait(state);
        }
    }

    /// Writes what there is room for, and waits for some.
    ///
    /// # Errors
    ///
    /// It was broken off or finished, or the session is over.
    pub(in crate::tunnel) fn write(&self, from: &[u8]) -> io::Result<usize> {
        let mut state = self.link.look();
        loop {
            state.check()?;
            let written = state.session.write(Clock.now(), self.number, from).map_err(|_| broken_off())?;
            if written > 0 || from.is_empty() {
                self.link.hand_over(&mut state);
                return Ok(written);
            }
            state = self.wait(state);
        }
    }

    /// Checks that bytes may flow, or will once the target is connected.
    ///
    /// # Errors
    ///
    /// The stream was refused or broken off, or the session is over.
    pub(in crate::tunnel) fn is_wanted(&self) -> io::Result<()> {
        let state = self.link.enter()?;
        match state.session.phase(self.number) {
            Phase::Opening | Phase::Open => Ok(()),
            Phase::Refused(_) | Phase::Reset => Err(broken_off()),
        }
    }

    /// Will write no more; what was written still leaves.
    ///
    /// # Errors
    ///
    /// It was broken off, or the session is over.
    pub(in crate::tunnel) fn shutdown(&self) -> io::Result<()> {
        let mut state = self.link.enter()?;
        state.session.finish(self.number).map_err(|_| broken_off())?;
        self.link.hand_over(&mut state);
        Ok(())
    }

    /// Waits until everything written, and the end of it, have arrived.
    ///
    /// # Errors
    ///
    /// It was broken off, or the session is over.
    pub(in crate::tunnel) fn finish(&self) -> io::Result<()> {
        self.shutdown()?;
        let mut state = self.link.look();
        while !state.session.has_arrived(self.number) {
            state.check()?;
            if state.session.phase(self.number) != Phase::Open {
                return Err(broken_off());
            }
            state = self.wait(state);
        }
        Ok(())
    }

    /// Breaks it off.
    pub(in crate::tunnel) fn abort(&self) {
        let mut state = self.link.look();
        state.session.reset(self.number);
        self.link.hand_over(&mut state);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut state = self.link.look();
        state.release(self.number);
        self.link.hand_over(&mut state);
    }
}
