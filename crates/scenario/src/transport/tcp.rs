//! Components of TCP in `flow.transport`: window, acknowledgements, ECN and timer.

use super::pacing::{self, assign};
use crate::reader::Reader;
use meshpace_core::parameter::Slot;
use meshpace_core::{Parameter, parameter};
use meshpace_settings::value::{Kind, Value};
use meshpace_transport::pacing::OutOfInterference;
use meshpace_transport::tcp::{self, ack, ecn, window};

/// Reads all components.
pub fn read(keys: &mut Reader<'_>, config: &mut tcp::Config, usual: &OutOfInterference) {
    keys.parameters(config);
    read_window(keys, config);
    pacing::read(keys, &mut config.pacing, usual);
    read_ack(keys, &mut config.ack);
    read_ecn(keys, &mut config.ecn);
}

fn is_table(value: Option<&Value>) -> bool {
    matches!(value, Some(Value { kind: Kind::Table(_), .. }))
}

fn read_window(keys: &mut Reader<'_>, config: &mut tcp::Config) {
    let window = &mut config.window;
    let kinds = window::Config::kinds();
    if !is_table(keys.get("window")) {
        assign(window, keys.choice("window", &kinds, &[]));
        return;
    }
    let mut keys = keys.table("window");
    if let Some(kind) = keys.choice("kind", &kinds, &[])
        && !kind.is_same_kind(window)
    {
        *window = kind;
    }
    if window.grows()
        && let Some(limit) =
            keys.integer("byte_counting", 0..=65535, "segments an ACK may count for (0: one step per ACK)")
    {
        config.byte_counting = (limit > 0).then_some(limit as u32);
    }
    keys.set_kind_matching(&kinds, |kind| kind.is_same_kind(window));
    keys.parameters(window);
    keys.finish(window.noun());
}

fn read_ack(keys: &mut Reader<'_>, ack: &mut ack::Config) {
    let kinds = ack::Config::kinds();
    if !is_table(keys.get("ack")) {
        assign(ack, keys.choice("ack", &kinds, &[]));
        return;
    }
    let mut keys = keys.table("ack");
    let is_kind = |kind: &ack::Config, ack: &ack::Config| core::mem::discriminant(kind) == core::mem::discriminant(ack);
    if let Some(kind) = keys.choice("kind", &kinds, &[])
        && !is_kind(&kind, ack)
    {
        *ack = kind;
    }
    keys.set_kind_matching(&kinds, |kind| is_kind(kind, ack));
    keys.parameters(ack);
    keys.finish(ack.noun());
}

static ECHO: Parameter = parameter!(echo: ecn::Echo = ecn::Echo::Latched => choice(ecn::Echo::WORDS), Expert,
    "rule by which the receiver reports marks", "RFC 3168; DCC, section IV");
static REACTION: Parameter = parameter!(reaction: bool = true => FLAG, Expert, "whether the window shrinks after marks", "RFC 3168; DCC, section IV");

fn read_ecn(keys: &mut Reader<'_>, config: &mut ecn::Config) {
    let kinds = [("off", ecn::Config::Off), ("rfc3168", ecn::Config::RFC_3168), ("dcc", ecn::Config::DCC)];
    if !is_table(keys.get("ecn")) {
        assign(config, keys.choice("ecn", &kinds, &[]));
        return;
    }
    let mut keys = keys.table("ecn");
    let (mut new_echo, mut new_reaction) = match *config {
        ecn::Config::On { echo, reaction } => (echo, reaction),
        ecn::Config::Off => (ecn::Echo::Latched, true),
    };
    keys.parameter(Slot::new(&ECHO, &mut new_echo));
    keys.parameter(Slot::new(&REACTION, &mut new_reaction));
    keys.finish("congestion marks");
    *config = ecn::Config::On { echo: new_echo, reaction: new_reaction };
}
