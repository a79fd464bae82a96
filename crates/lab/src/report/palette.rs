//! One colour, one marker and one label per transport, the same everywhere.
//!
//! The colours are those of M. Okabe and K. Ito, "Color Universal Design", 2008, which people with any kind of colour
//! vision can tell apart; the shape of the marker says the same without colour.

use plotters::style::RGBColor;

/// The shape of a marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A disc.
    Disc,
    /// A triangle on its base.
    Triangle,
    /// A square.
    Square,
}

/// How a transport is shown.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What people read.
    pub label: &'static str,
    /// Its colour.
    pub color: RGBColor,
    /// Its marker.
    pub shape: Shape,
}

const LOOKS: &[Look] = &[
    Look { name: "newreno", label: "NewReno", color: RGBColor(0xd5, 0x5e, 0x00), shape: Shape::Disc },
    Look { name: "tcp-ap", label: "TCP-AP (paper)", color: RGBColor(0x00, 0x72, 0xb2), shape: Shape::Triangle },
    Look {
        name: "tcp-ap-released",
        label: "TCP-AP (released agent)",
        color: RGBColor(0x00, 0x9e, 0x73),
        shape: Shape::Square,
    },
];

/// The look of anything that has none of its own: grey.
const OTHER: Look = Look { name: "", label: "", color: RGBColor(0x77, 0x77, 0x77), shape: Shape::Disc };

/// How the transport called `name` is shown.
pub fn look(name: &str) -> Look {
    LOOKS.iter().copied().find(|look| look.name == name).unwrap_or(OTHER)
}

/// What people read for the transport called `name`.
pub fn label(name: &str) -> &str {
    match look(name).label {
        "" => name,
        label => label,
    }
}

/// A colour as CSS writes it.
pub fn css(color: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_transports_look_alike_even_without_colour() {
        for (i, a) in LOOKS.iter().enumerate() {
            for b in &LOOKS[..i] {
                assert!(a.color != b.color && a.shape != b.shape && a.label != b.label, "{} and {}", a.name, b.name);
            }
        }
    }
}
