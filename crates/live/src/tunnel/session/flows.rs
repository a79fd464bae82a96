//! The end of one flow of datagrams, as a tunnel has it.

use super::flow::Class;
use super::link::Link;
use super::sink::Sink;
use super::store::Store;
use crate::Clock;
use crate::tunnel::Refusal;
use std::io;
use std::sync::Arc;

/// One flow. Dropping it ends it at both ends.
#[derive(Debug)]
pub(in crate::tunnel) struct Flow {
    link: Link,
    number: u32,
}

/// Told of a flow that the peer has opened: where its datagrams go, if anywhere.
pub(in crate::tunnel) type Begin = dyn FnMut(Flow, Class, String) -> Option<Arc<dyn Sink>> + Send;

impl Link {
    /// Opens a flow to a target.
    ///
    /// # Errors
    ///
    /// The session is over, or has too many flows.
    pub(in crate::tunnel) fn open_flow(&self, class: Class, target: &str, sink: Arc<dyn Sink>) -> io::Result<Flow> {
        let mut state = self.enter()?;
        let crowded = || io::Error::other("too many flows of datagrams are open");
        let number = state.session.open_flow(Clock.now(), class, target).ok_or_else(crowded)?;
        state.sinks.insert(number, sink);
        self.hand_over(&mut state);
        Ok(Flow { link: self.clone(), number })
    }

    /// Hands on what has come for flows. `begin` is told of new ones.
    pub(super) fn pass_on(&self, begin: &mut Begin) {
        let mut state = self.look();
        for (number, class, target) in state.session.take_asked_flows() {
            drop(state);
            let sink = begin(Flow { link: self.clone(), number }, class, target);
            state = self.look();
            if let Some(sink) = sink.filter(|_| state.session.has_flow(number)) {
                state.sinks.insert(number, sink);
            }
        }
        let came = state.session.take_datagrams();
        let came: Vec<_> = came.into_iter().map(|(of, bytes)| (state.sinks.get(&of).cloned(), bytes)).collect();
        let left = state.session.take_left();
        let left: Vec<_> = left.into_iter().map(|(of, code)| (state.sinks.remove(&of), code)).collect();
        drop(state);
        for (sink, bytes) in came {
            sink.iter().for_each(|sink| sink.deliver(&bytes));
        }
        for (sink, code) in left {
            let why = (code != 0).then(|| Refusal::of(code));
            sink.iter().for_each(|sink| sink.on_end(why));
        }
    }
}

impl Flow {
    /// A datagram is to go to the far end, now, later or not at all, by the flow's class.
    ///
    /// # Errors
    ///
    /// The flow or the session is over.
    pub(in crate::tunnel) fn send(&self, datagram: &[u8]) -> io::Result<()> {
        let mut state = self.link.enter()?;
        let over = |_| io::Error::new(io::ErrorKind::NotConnected, "the far end has ended the flow");
        state.session.send_datagram(Clock.now(), self.number, datagram).map_err(over)?;
        self.link.hand_over(&mut state);
        Ok(())
    }

    /// Memory for datagrams that wait.
    pub(in crate::tunnel) fn store(&self) -> Store {
        self.link.look().session.store()
    }

    /// Whether datagrams may still go.
    pub(in crate::tunnel) fn is_open(&self) -> bool {
        self.link.enter().is_ok_and(|state| state.session.has_flow(self.number))
    }

    /// Whether its session is doubted, as [`Link::is_doubted`].
    pub(in crate::tunnel) fn is_doubted(&self) -> bool {
        self.link.is_doubted()
    }

    /// Ends it and says why.
    pub(in crate::tunnel) fn refuse(self, why: Refusal) {
        self.end(why as u8);
    }

    fn end(&self, code: u8) {
        let mut state = self.link.look();
        state.session.leave(self.number, code);
        state.sinks.remove(&self.number);
        self.link.hand_over(&mut state);
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.end(0);
    }
}
