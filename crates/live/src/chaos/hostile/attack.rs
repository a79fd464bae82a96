//! Actions of a hostile peer: those that its keys allow and the protocol forbids, or allows only in
//! moderation.

use super::super::faults::named;

named! {
    /// An action of a hostile peer.
    Attack {
        /// Sends from another of its own addresses from now on, and answers there.
        Move = "move",
        /// Sends segments from the address of a victim, and path responses with guessed numbers.
        GuessResponse = "guess-response",
        /// Sends segments from the address of a victim, and path responses with numbers of earlier
        /// challenges.
        ReplayResponse = "replay-response",
        /// Sends path challenges, from one of its own addresses or from that of a victim.
        ChallengeFlood = "challenge-flood",
        /// Sends copies of its own datagrams from the address of a victim.
        ReplayElsewhere = "replay-elsewhere",
        /// Acknowledges segments that the other end has not sent yet.
        AcknowledgeUnsent = "acknowledge-unsent",
        /// Acknowledges something that was never sent, as soon as an arriving segment shows that it
        /// was not. Before that, it may also acknowledge numbers below the newest one that it has
        /// received, whether they were sent or skipped.
        AcknowledgeSkipped = "acknowledge-skipped",
        /// Drops everything that arrives from now on, and acknowledges what it assumes to have been
        /// sent.
        AcknowledgeBlindly = "acknowledge-blindly",
        /// Announces a window of zero.
        ZeroWindow = "zero-window",
        /// Announces the largest window that the header can express.
        LargestWindow = "largest-window",
        /// Announces a window that becomes smaller each time.
        ShrinkingWindow = "shrinking-window",
        /// Sends pieces of one byte out of order.
        TinyPieces = "tiny-pieces",
        /// Sends single bytes that are far apart, spread over the whole window that it was given.
        Scatter = "scatter",
        /// Sends pieces that overlap.
        Overlap = "overlap",
        /// Sends pieces beyond the window that it was given.
        BeyondWindow = "beyond-window",
        /// Sends pieces at offsets near the largest one of the header.
        HugeOffset = "huge-offset",
        /// Ends its stream at an offset before, within or after the data that it has sent.
        OddFin = "odd-fin",
        /// Sends a reset and continues.
        Reset = "reset",
        /// Probes the other end without end.
        SynFlood = "syn-flood",
        /// Reads and acknowledges nothing for a while.
        Stall = "stall",
        /// Does not let its application read for a while.
        SlowReader = "slow-reader",
        /// Opens many connections.
        ManyConnections = "many-connections",
        /// Begins handshakes with valid keys and does not complete them.
        Unfinished = "unfinished",
        /// Closes a connection and does not read any more.
        LetGo = "let-go",
        /// Removes a connection without telling the other end.
        Forget = "forget",
    }
}

impl Attack {
    /// True if the action makes sense against an end that has opened the connection and does not
    /// listen.
    pub(super) fn fits_opener(self) -> bool {
        !matches!(self, Attack::ManyConnections | Attack::Unfinished)
    }
}
