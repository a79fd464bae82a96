//! How lines look: that of their transport wherever they have one.

use crate::chart::Style;
use crate::palette::{self, Fill, Shape};

/// M. Okabe and K. Ito, "Color Universal Design", 2008, the darker ones: for lines that are no transport's.
const COLORS: [&str; 6] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const SHAPES: [Shape; 6] =
    [Shape::Disc, Shape::Triangle, Shape::Square, Shape::Diamond, Shape::Funnel, Shape::Pentagon];
const DASHES: [&str; 6] = ["", "7 4", "2 3", "12 4 2 4", "12 4", "5 2 1 2"];

/// The look of each line by its label: lines of one colour differ in their dashes.
pub fn styles(labels: &[String]) -> Vec<Style> {
    let mut styles: Vec<Style> = Vec::new();
    for (number, label) in labels.iter().enumerate() {
        // A transport with another parameter has the colour of the plain one.
        let own = label.split(", ").find_map(|part| palette::look(part.split('{').next().unwrap_or(part)));
        let free = || Style {
            color: COLORS[number % COLORS.len()].to_owned(),
            dashes: String::new(),
            shape: SHAPES[number % SHAPES.len()],
            fill: Fill::Full,
        };
        let mut style = own.map_or_else(free, Style::from);
        let before = styles.iter().filter(|other| other.color == style.color).count();
        style.dashes = DASHES[before % DASHES.len()].to_owned();
        styles.push(style);
    }
    styles
}
