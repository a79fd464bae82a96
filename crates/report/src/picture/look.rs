//! Look of lines: that of their transport if it has one.

use crate::chart::Style;
use crate::palette::{self, Fill, Shape};
use meshpace_scenario::Plot as Settings;

/// Colours of lines that do not have a transport's look: the darker ones of M. Okabe and K. Ito,
/// "Color Universal Design", 2008.
const COLORS: [&str; 6] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const SHAPES: [Shape; 6] =
    [Shape::Disc, Shape::Triangle, Shape::Square, Shape::Diamond, Shape::Funnel, Shape::Pentagon];
const DASHES: [&str; 6] = ["", "7 4", "2 3", "12 4 2 4", "12 4", "5 2 1 2"];

/// Look of the transport that a part of a label names. Parameters in braces and additions after a
/// plus sign are ignored if the full name has no look.
fn own(part: &str) -> Option<palette::Look> {
    let name = part.split('{').next().unwrap_or(part);
    palette::look(name).or_else(|| palette::look(name.split('+').next()?))
}

/// Subject of a line without a transport's look: the label without the number of the flow.
fn subject(label: &str) -> &str {
    label.rsplit_once(", flow ").map_or(label, |(subject, _)| subject)
}

/// Looks of `count` lines of the same subject. They differ in colour first, then in dashes.
pub fn apart(count: usize) -> Vec<Style> {
    let style = |number: usize| Style {
        color: COLORS[number % COLORS.len()].to_owned(),
        dashes: DASHES[number / COLORS.len() % DASHES.len()].to_owned(),
        shape: SHAPES[number % SHAPES.len()],
        fill: Fill::Full,
    };
    (0..count).map(style).collect()
}

/// Look of each line, by its label. Lines of the same colour differ in their dashes; the flows of
/// one point have the same colour.
pub fn styles(labels: &[String], settings: &Settings) -> Vec<Style> {
    let of_transport = |label: &String| label.split(", ").find_map(own).map(Style::from);
    let given = |(number, label): (usize, &String)| {
        let plain = Style {
            color: String::new(),
            dashes: String::new(),
            shape: SHAPES[number % SHAPES.len()],
            fill: Fill::Full,
        };
        let color = settings.colour(label)?.clone();
        Some(Style { color, ..of_transport(label).unwrap_or(plain) })
    };
    let owns: Vec<Option<Style>> =
        labels.iter().enumerate().map(|label| given(label).or_else(|| of_transport(label.1))).collect();
    let is_taken = |color: &str| owns.iter().flatten().any(|own| own.color == color);
    let mut free: Vec<&str> = COLORS.into_iter().filter(|color| !is_taken(color)).collect();
    if free.is_empty() {
        free = COLORS.to_vec();
    }
    let mut strangers: Vec<&str> = Vec::new();
    let mut styles: Vec<Style> = Vec::new();
    for (label, own) in labels.iter().zip(&owns) {
        let mut style = own.clone().unwrap_or_else(|| {
            let known = strangers.iter().position(|other| *other == subject(label));
            let number = known.unwrap_or_else(|| {
                strangers.push(subject(label));
                strangers.len() - 1
            });
            Style {
                color: free[number % free.len()].to_owned(),
                dashes: String::new(),
                shape: SHAPES[number % SHAPES.len()],
                fill: Fill::Full,
            }
        });
        let before = styles.iter().filter(|other| other.color == style.color).count();
        style.dashes = DASHES[before % DASHES.len()].to_owned();
        styles.push(style);
    }
    styles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colors(labels: &[&str]) -> Vec<String> {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        styles(&labels, &Settings::default()).into_iter().map(|style| style.color).collect()
    }

    #[test]
    fn a_line_has_one_colour_in_the_plots_of_all_flows_and_of_each() {
        let all = colors(&["newreno", "cwl-h4", "of one's own", "tpa-2"]);
        let flows = colors(&[
            "newreno, flow 0",
            "newreno, flow 1",
            "cwl-h4, flow 0",
            "cwl-h4, flow 1",
            "of one's own, flow 0",
            "of one's own, flow 1",
            "tpa-2, flow 0",
            "tpa-2, flow 1",
        ]);
        for (number, color) in all.iter().enumerate() {
            assert_eq!((&flows[2 * number], &flows[2 * number + 1]), (color, color), "{number}");
            assert!(!all[..number].contains(color), "{number}");
        }
    }

    #[test]
    fn a_given_colour_is_that_of_its_line_alone() {
        let labels = ["newreno", "tpa-2", "of one's own"].map(str::to_owned);
        let colours = [("newreno", "#010203"), ("of one's own", "#040506")];
        let colours = colours.map(|(line, colour)| (line.to_owned(), colour.to_owned())).into_iter().collect();
        let settings = Settings { colours, ..Settings::default() };
        let (given, plain) = (styles(&labels, &settings), styles(&labels, &Settings::default()));
        assert_eq!((given[0].color.as_str(), given[2].color.as_str()), ("#010203", "#040506"));
        assert_eq!((given[1].clone(), given[0].shape), (plain[1].clone(), plain[0].shape));
        let flow = styles(&["newreno, flow 1".to_owned()], &settings);
        assert_eq!(flow[0].color, "#010203");
    }

    #[test]
    fn what_is_added_to_a_transport_leaves_its_colour() {
        let one = colors(&["cubic", "cubic+sack", "cubic{window.kind=cubic}", "hops 4, cubic", "cubic, flow 3"]);
        assert!(one.iter().all(|color| *color == one[0]), "{one:?}");
        assert_ne!(one[0], colors(&["newreno"])[0]);
    }
}
