//! Small parts of a page: verdicts in their colours, numbers, the marks of transports.

use super::palette::{Fill, Look, Shape, corners, css};
use maud::{Markup, html};
use meshpace_lab::register::Verdict;
use meshpace_lab::statistics::Estimate;

/// The class of a verdict in the style sheet.
pub fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::InShape => "in-shape",
        Verdict::Differs => "differs",
        Verdict::CannotBeJudged => "cannot-be-judged",
    }
}

/// A verdict in its colour, with a sign that says it without.
pub fn chip(verdict: Verdict) -> Markup {
    let sign = match verdict {
        Verdict::Reproduced => "✓",
        Verdict::InShape => "≈",
        Verdict::Differs => "✗",
        Verdict::CannotBeJudged => "–",
    };
    html! { span class=(format!("chip {}", class(verdict))) { (sign) " " span.words { (verdict.words()) } } }
}

/// Hyphens before digits become minus signs, unless they are part of a name such as TPA-2.
pub fn signs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let minus = c == '-' && chars.peek().is_some_and(char::is_ascii_digit);
        out.push(if minus && !out.ends_with(|before: char| before.is_alphanumeric() || before == '*') {
            '\u{2212}'
        } else {
            c
        });
    }
    out
}

/// A mean with its half width.
pub fn number(estimate: &Estimate) -> Markup {
    if estimate.mean.is_nan() {
        return html! { "–" };
    }
    html! {
        (digits(estimate.mean))
        @if estimate.half_width.is_finite() { " " small { "± " (digits(estimate.half_width)) } }
    }
}

/// As many digits as mean something; a dash for what could not be measured.
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let text = match value.abs() {
        size if size == 0.0 || size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    signs(&text)
}

/// The mark of a transport, as in the plots.
pub fn swatch(look: &Look) -> Markup {
    let color = css(look.color);
    let dashes = look.fill.dashes().map(|(length, gap)| format!("{length} {gap}"));
    let points = corners(look.shape).iter().map(|(x, y)| format!("{},{}", 15 + x, 8 + y));
    html! {
        svg viewBox="0 0 30 16" aria-hidden="true" {
            line x1="0" y1="8" x2="30" y2="8" stroke=(color) stroke-width="2.5" stroke-dasharray=[dashes] {}
            g fill=(if look.fill == Fill::Full { &color } else { "#FFFFFF" }) stroke=(color) stroke-width="2" {
                @match look.shape {
                    Shape::Disc => circle cx="15" cy="8" r="5" {},
                    Shape::Cross => path d="M10 3 20 13M10 13 20 3" stroke-width="3" {},
                    _ => polygon points=(points.collect::<Vec<_>>().join(" ")) {},
                }
                @match look.fill {
                    Fill::Dot => circle cx="15" cy="8" r="1.5" fill=(color) {},
                    Fill::Stroke => line x1="12" y1="8" x2="18" y2="8" {},
                    Fill::Full | Fill::Hollow => {},
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_hyphens() {
        assert_eq!(signs("TPA-2 with -3.5 (-4 to -3)"), "TPA-2 with \u{2212}3.5 (\u{2212}4 to \u{2212}3)");
        assert_eq!(digits(f64::NAN), "–");
        assert_eq!((digits(0.0), digits(306.31), digits(0.0123)), ("0.0".into(), "306.3".into(), "0.012".into()));
    }
}
