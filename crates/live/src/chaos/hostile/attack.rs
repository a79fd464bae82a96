//! Actions of a hostile peer: what its keys allow and the protocol forbids, or allows only in moderation.

use super::super::faults::named;

named! {
    /// An action of a hostile peer.
    Attack {
        /// Sends from another address of its own from now on, and answers there.
        Move = "move",
        /// Sends segments from the address of a victim, and responses with guessed numbers.
        GuessResponse = "guess-response",
        /// The same with responses that were right once.
        ReplayResponse = "replay-response",
        /// Sends path challenges, from an address of its own or from that of a victim.
        ChallengeFlood = "challenge-flood",
        /// Sends copies of its own datagrams from the address of a victim.
        ReplayElsewhere = "replay-elsewhere",
        /// Acknowledges what the other end has not sent yet.
        AcknowledgeUnsent = "acknowledge-unsent",
        /// Acknowledges numbers below the newest that it has heard, whether they were sent or skipped; and, as soon as it can tell from
        /// what arrives that something was never sent, that.
        AcknowledgeSkipped = "acknowledge-skipped",
        /// Drops all that arrives from now on, and acknowledges what it takes to have been sent.
        AcknowledgeBlindly = "acknowledge-blindly",
        /// Announces a window of zero.
        ZeroWindow = "zero-window",
        /// Announces the largest window that the header has room for.
        LargestWindow = "largest-window",
        /// Announces a window that becomes smaller each time.
        ShrinkingWindow = "shrinking-window",
        /// Sends pieces of one byte out of order.
        TinyPieces = "tiny-pieces",
        /// Sends bytes that lie far apart, all over the window that it was given.
        Scatter = "scatter",
        /// Sends pieces that overlap.
        Overlap = "overlap",
        /// Sends pieces beyond the window that it was given.
        BeyondWindow = "beyond-window",
        /// Sends pieces at offsets near the greatest of the header.
        HugeOffset = "huge-offset",
        /// Ends its stream at an offset before, within or beyond what it has sent.
        OddFin = "odd-fin",
        /// Sends a reset and goes on.
        Reset = "reset",
        /// Asks for signs of life without end.
        SynFlood = "syn-flood",
        /// Reads and acknowledges nothing for a while.
        Stall = "stall",
        /// Its application does not read for a while.
        SlowReader = "slow-reader",
        /// Opens many connections.
        ManyConnections = "many-connections",
        /// Begins handshakes with good keys and does not finish them.
        Unfinished = "unfinished",
        /// Lets go of a connection.
        LetGo = "let-go",
        /// Forgets a connection without a word.
        Forget = "forget",
    }
}

impl Attack {
    /// Whether it makes sense against an end that has opened the connection, and listens to nobody.
    pub(super) fn fits_opener(self) -> bool {
        !matches!(self, Attack::ManyConnections | Attack::Unfinished)
    }
}
