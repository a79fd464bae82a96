//! Kinds of flows. Jain's index is meaningful among flows of one kind only. Transfers, files with
//! pauses between them, and datagrams at a rate of their own are not supposed to get equal shares.

use super::{FlowRecord, Record};
use crate::statistics::jain;

/// Kind of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowKind {
    /// Transfer that uses as much capacity as it can get.
    Transfer,
    /// Files with pauses between them.
    Files,
    /// Datagrams that are sent at a rate of their own, for example speech.
    Datagrams,
}

impl FlowRecord {
    /// Returns the kind of the flow.
    pub fn kind(&self) -> FlowKind {
        let transport = self.transport.split(['{', '+']).next().unwrap_or_default();
        match transport {
            _ if self.completions.is_some() => FlowKind::Files,
            "udp" | "udp-paced" | "emulated-udp" => FlowKind::Datagrams,
            _ if self.loss_ratio.is_some() => FlowKind::Datagrams,
            _ => FlowKind::Transfer,
        }
    }
}

impl Record {
    /// True if all flows are of one kind.
    pub fn is_of_one_kind(&self) -> bool {
        self.flows.windows(2).all(|pair| pair[0].kind() == pair[1].kind())
    }

    /// Jain's index of the flows of one kind. `None` unless the run has several flows of this kind
    /// beside flows of another kind.
    pub(super) fn jain_of(&self, kind: FlowKind) -> Option<f64> {
        let shares: Vec<f64> =
            self.flows.iter().filter(|flow| flow.kind() == kind).map(|flow| flow.goodput_bps).collect();
        let index = jain(&shares);
        (shares.len() > 1 && !self.is_of_one_kind() && !index.is_nan()).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn transfers_beside_speech_have_an_index_of_their_own() {
        let flow = |transport: &str, goodput: f64| json!({"transport": transport, "goodput_bps": goodput, "delivered_bytes": 1});
        let of =
            |flows: serde_json::Value| crate::record::record(json!({"duration_s": 9.0, "jain": 0.5, "flows": flows}));
        // (3 + 1)^2 / (2 * (9 + 1))
        let mixed = of(json!([flow("tcp-ap", 3.0), flow("newreno", 1.0), flow("udp+llap", 0.1)]));
        assert_eq!((mixed.jain_transfers, mixed.jain_datagrams, mixed.jain_files), (Some(0.8), None, None));
        assert_eq!(mixed.jain, 0.5, "the index of all flows stays what it is");
        let alike = of(json!([flow("tcp-ap", 3.0), flow("newreno", 1.0)]));
        assert_eq!(alike.jain_transfers, None, "jain says it");
        let one = of(json!([flow("tcp-ap", 3.0), flow("udp", 1.0)]));
        assert_eq!(one.jain_transfers, None, "one transfer shares nothing");
    }
}
