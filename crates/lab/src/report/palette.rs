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
    /// A square on its corner.
    Diamond,
    /// A triangle on its tip.
    Funnel,
    /// Two crossing strokes.
    Cross,
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
    /// Whether the marker is hollow and the line dashed: a variant of the transport with the same colour and shape.
    pub hollow: bool,
}

const fn full(name: &'static str, label: &'static str, color: RGBColor, shape: Shape) -> Look {
    Look { name, label, color, shape, hollow: false }
}

const fn hollow(name: &'static str, label: &'static str, color: RGBColor, shape: Shape) -> Look {
    Look { name, label, color, shape, hollow: true }
}

const VERMILLION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);
const SKY: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
const ORANGE: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
const PURPLE: RGBColor = RGBColor(0xcc, 0x79, 0xa7);

const LOOKS: &[Look] = &[
    full("newreno", "NewReno", VERMILLION, Shape::Disc),
    hollow("newreno+dyn-delack", "NewReno + delayed ACK", VERMILLION, Shape::Disc),
    full("tcp-ap", "TCP-AP (paper)", BLUE, Shape::Triangle),
    hollow("tcp-ap+dyn-delack", "TCP-AP (paper) + delayed ACK", BLUE, Shape::Triangle),
    full("tcp-ap-released", "TCP-AP (released agent)", GREEN, Shape::Square),
    full("tcp-ap-sync", "TCP-AP, synchronized clocks", SKY, Shape::Diamond),
    hollow("tcp-ap-sync+dyn-delack", "TCP-AP, synchronized clocks + delayed ACK", SKY, Shape::Diamond),
    full("newreno-cwl", "NewReno, best window per hop count", ORANGE, Shape::Funnel),
    full("udp-paced", "UDP, best rate per hop count", PURPLE, Shape::Cross),
];

/// The look of anything that has none of its own: grey.
const OTHER: Look = full("", "", RGBColor(0x77, 0x77, 0x77), Shape::Disc);

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
                assert!((a.shape, a.hollow) != (b.shape, b.hollow) && a.label != b.label, "{} and {}", a.name, b.name);
                assert_eq!(a.color == b.color, a.shape == b.shape, "{} and {}", a.name, b.name);
            }
        }
    }
}
