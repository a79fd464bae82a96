//! Term of a check, written as one string: `curve`, `curve:metric` or `curve:metric#flow`. Each
//! form may be followed by `@x` to select one point of the axis.

use serde::Deserialize;

/// Quantity of a curve, at one x or at every x.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Term {
    /// Id of the curve.
    pub curve: String,
    /// Id of the metric. `None` stands for the experiment's first metric.
    pub metric: Option<String>,
    /// Number of the flow, for a metric that has a value for each flow.
    pub flow: Option<usize>,
    /// The x at which the quantity is taken. `None` means every x.
    pub x: Option<f64>,
}

impl TryFrom<String> for Term {
    type Error = String;

    fn try_from(text: String) -> Result<Term, String> {
        let wrong = |what: &str| {
            format!("\"{text}\": {what}; expected curve, curve:metric, curve:metric#flow, or one with @x behind it")
        };
        let (rest, x) = match text.split_once('@') {
            Some((rest, x)) => (rest, Some(x.parse().map_err(|_| wrong("the x is no number"))?)),
            None => (text.as_str(), None),
        };
        let (rest, flow) = match rest.split_once('#') {
            Some((rest, flow)) => (rest, Some(flow.parse().map_err(|_| wrong("the flow is no number"))?)),
            None => (rest, None),
        };
        let (curve, metric) = match rest.split_once(':') {
            Some((curve, metric)) => (curve, Some(metric.to_owned())),
            None => (rest, None),
        };
        if curve.is_empty() || metric.as_deref() == Some("") {
            return Err(wrong("a part is empty"));
        }
        Ok(Term { curve: curve.to_owned(), metric, flow, x })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(text: &str) -> Result<Term, String> {
        Term::try_from(text.to_owned())
    }

    #[test]
    fn every_part_is_optional_but_the_curve() {
        let whole = term("tpa*-3:flow-goodput#1@20").unwrap();
        assert_eq!((whole.curve.as_str(), whole.metric.as_deref()), ("tpa*-3", Some("flow-goodput")));
        assert_eq!((whole.flow, whole.x), (Some(1), Some(20.0)));
        let bare = term("newreno+delack").unwrap();
        assert_eq!((bare.curve.as_str(), bare.metric, bare.flow, bare.x), ("newreno+delack", None, None, None));
        for wrong in ["", ":jain", "a:", "a@", "a@b", "a:b#c"] {
            assert!(term(wrong).is_err(), "{wrong}");
        }
    }
}
