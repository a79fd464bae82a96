//! `[link]`: the queue discipline and the marker between routing and MAC. Each is written as a
//! kind, or as a table with a kind and parameters.

use super::reader::Reader;
use meshpace_core::ParameterError;
use meshpace_mesh::config::{Jitter, LinkConfig, MarkerConfig, QueueConfig, Repeats};
use meshpace_settings::value::{Kind, Value};

/// Reads the table `[link]`.
pub fn read(root: &mut Reader<'_>) -> LinkConfig {
    let mut keys = root.table("link");
    let queue = piece(&mut keys, "queue", &QueueConfig::kinds(), |keys, queue| {
        if *queue == QueueConfig::DropTail {
            return "the drop-tail queue, whose length is radio.queue";
        }
        keys.parameters(queue);
        report(keys, queue.check());
        "the queue"
    });
    let marker = piece(&mut keys, "marker", &MarkerConfig::kinds(), |keys, marker| {
        if *marker == MarkerConfig::None {
            return "no marker";
        }
        keys.parameters(marker);
        report(keys, marker.check());
        "the marker"
    });
    let mut repeats = Repeats::default();
    keys.parameters(&mut repeats);
    let mut jitter = Jitter::default();
    keys.parameters(&mut jitter);
    keys.finish("[link]");
    LinkConfig { queue, marker, repeats, jitter, ..LinkConfig::default() }
}

/// Reads `key`: one of `kinds`, or a table with its `kind` and parameters. `parameters` reads the
/// parameters; it returns the name of the component for the message about an unknown key.
fn piece<T: Clone + Default>(
    keys: &mut Reader<'_>,
    key: &'static str,
    kinds: &[(&'static str, T)],
    parameters: impl FnOnce(&mut Reader<'_>, &mut T) -> &'static str,
) -> T {
    let Some(Value { kind: Kind::Table(_), .. }) = keys.get(key) else {
        return keys.choice(key, kinds, &[]).unwrap_or_default();
    };
    let mut keys = keys.table(key);
    let kind = keys.choice("kind", kinds, &[]);
    let Some(mut piece) = kind else {
        if keys.value("kind").is_none() {
            let names: Vec<String> = kinds.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            keys.report_invalid("kind", "is missing", format!("expected one of {}", names.join(", ")));
        }
        // Without a kind the meaning of the parameters is unknown, so they are not checked.
        return T::default();
    };
    let context = parameters(&mut keys, &mut piece);
    keys.finish(context);
    piece
}

/// Reports a parameter that is out of its range, at its key.
fn report(keys: &Reader<'_>, checked: Result<(), ParameterError>) {
    if let Err(error) = checked {
        let key = error.name.rsplit('.').next().unwrap_or_default();
        let message = format!("expected {}, found {}", error.expected, error.value);
        keys.report_invalid(key, message, format!("expected {}", error.expected));
    }
}
