//! Selection of the points of a sweep, or of the records, that belong to a panel, a curve and an x.

use super::data::{Axis, Curve, Panel};
use crate::record::plain;
use serde_json::{Map, Value};

/// Key of a sweep that names the transport.
pub const TRANSPORT: &str = "flow.transport";

/// Returns whether two values of a sweep are equal. The numbers 2 and 2.0 are equal.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        (a, b) => a == b,
    }
}

/// Returns whether `point` has all values of `condition`.
pub fn holds(condition: &Map<String, Value>, point: &Map<String, Value>) -> bool {
    condition.iter().all(|(key, value)| point.get(key).is_some_and(|other| same(value, other)))
}

impl Panel {
    /// Returns whether the runs of `point` are shown in this panel.
    pub fn has(&self, point: &Map<String, Value>) -> bool {
        holds(&self.point, point)
    }
}

impl Curve {
    /// Returns whether the runs of `point` belong to this curve.
    pub fn has(&self, point: &Map<String, Value>) -> bool {
        let by_transport = match (&self.tuned, &self.point) {
            (Some(tuned), _) => point.get(TRANSPORT).is_some_and(|transport| {
                transport.get("name").and_then(Value::as_str) == Some(&tuned.transport)
                    && transport.pointer(&tuned.parameter).is_some()
            }),
            (None, Some(_)) => true,
            (None, None) => point.get(TRANSPORT).and_then(Value::as_str) == Some(&self.id),
        };
        by_transport && self.point.as_ref().is_none_or(|condition| holds(condition, point))
    }

    /// Value of the tuned parameter at `point`: its text as the sweep writes it, and its number.
    /// `None` if the curve is not tuned or the point lacks the parameter.
    pub fn choice(&self, point: &Map<String, Value>) -> Option<(String, f64)> {
        let value = point.get(TRANSPORT)?.pointer(&self.tuned.as_ref()?.parameter)?;
        Some((plain(value), number(value)))
    }
}

/// Position on the horizontal axis.
#[derive(Clone, PartialEq, Debug)]
pub struct X {
    /// Number of the position.
    pub value: f64,
    /// Text of the value as the sweep writes it. Empty if the experiment has no axis.
    pub text: String,
}

impl Axis {
    /// Position of `point` on the axis. `None` if the sweep does not vary the axis key at that
    /// point.
    pub fn of(&self, point: &Map<String, Value>) -> Option<X> {
        let value = point.get(&self.key)?;
        Some(X { value: number(value), text: plain(value) })
    }
}

/// Number of a value of a sweep; a text such as "20 kbit/s" gives 20. NaN if the text does not
/// begin with a number.
fn number(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN),
        value => value.as_f64().unwrap_or(f64::NAN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn point(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_curve_is_a_transport_a_condition_or_a_choice() {
        let curve = |text: &str| toml::from_str::<Curve>(text).unwrap();
        let plain = point(json!({"flow.transport": "newreno", "link.queue": "llap"}));
        let tuned = point(json!({"flow.transport": {"name": "newreno", "window": {"segments": 3}}}));
        assert!(curve("id = \"newreno\"").has(&plain) && !curve("id = \"newreno\"").has(&tuned));
        let with =
            curve("id = \"newreno+llap\"\npoint = { \"flow.transport\" = \"newreno\", \"link.queue\" = \"llap\" }");
        assert!(with.has(&plain) && !with.has(&tuned));
        let best =
            curve("id = \"best\"\ntuned = { transport = \"newreno\", parameter = \"/window/segments\", noun = \"n\" }");
        assert!(best.has(&tuned) && !best.has(&plain));
        assert_eq!(best.choice(&tuned), Some(("3".to_owned(), 3.0)));
    }

    #[test]
    fn an_x_is_a_number_with_or_without_a_unit() {
        let axis = Axis { key: "flow.rate".into(), title: String::new() };
        assert_eq!(axis.of(&point(json!({"flow.rate": "20 kbit/s"}))).unwrap().value, 20.0);
        assert_eq!(axis.of(&point(json!({"flow.rate": 0.5}))).unwrap(), X { value: 0.5, text: "0.5".into() });
        assert_eq!(axis.of(&Map::new()), None);
        assert!(same(&json!({"a": 2}), &json!({"a": 2.0})) && !same(&json!([1]), &json!([1, 2])));
    }
}
