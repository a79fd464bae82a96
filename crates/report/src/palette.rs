//! Colour and marker of each transport, the same in all plots.
//!
//! A family of transports has a colour and a shape. Its members differ in the fill of the marker
//! and the dashes of the line, so that shape and fill identify a transport without colour.
//!
//! The colours are those of M. Okabe and K. Ito, "Color Universal Design", 2008. Further families
//! have the dark colours of P. Tol, "Colour schemes", SRON 2021, which people with any kind of
//! colour vision can distinguish, and a bronze.

/// Colour as red, green and blue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Color(u8, u8, u8);

/// Shape of a marker.
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
    /// A pentagon.
    Pentagon,
    /// A hexagon.
    Hexagon,
    /// A bar lying down.
    Slab,
    /// A bar standing.
    Post,
    /// Two triangles tip to tip.
    Bow,
    /// A thick plus.
    Plus,
    /// An arrow's head, pointing down.
    Chevron,
    /// A star of four points.
    Star,
    /// A bar that is wider below.
    Trapezoid,
}

/// Fill of a marker and dash of its line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// Filled; the line is solid.
    Full,
    /// Hollow; the line is dashed.
    Hollow,
    /// Hollow with a dot; the line is dotted.
    Dot,
    /// Hollow with a stroke; the line has long dashes.
    Stroke,
}

impl Fill {
    /// Lengths of the dashes and of the gaps between them, pixels. `None` for a solid line.
    pub fn dashes(self) -> Option<(u32, u32)> {
        match self {
            Fill::Full => None,
            Fill::Hollow => Some((6, 4)),
            Fill::Dot => Some((2, 4)),
            Fill::Stroke => Some((12, 4)),
        }
    }
}

/// Look of a transport.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Look {
    /// Colour of line and marker.
    pub color: Color,
    /// Shape of the marker.
    pub shape: Shape,
    /// Fill, which identifies the member of the family.
    pub fill: Fill,
}

/// Corners of the markers that are polygons, in pixels around the middle.
pub fn corners(shape: Shape) -> &'static [(i32, i32)] {
    match shape {
        Shape::Disc | Shape::Cross => &[],
        Shape::Triangle => &[(0, -7), (6, 4), (-6, 4)],
        Shape::Square => &[(-5, -5), (5, -5), (5, 5), (-5, 5)],
        Shape::Diamond => &[(0, -7), (7, 0), (0, 7), (-7, 0)],
        Shape::Funnel => &[(0, 7), (6, -4), (-6, -4)],
        Shape::Pentagon => &[(0, -6), (6, -2), (4, 5), (-4, 5), (-6, -2)],
        Shape::Hexagon => &[(-6, 0), (-3, -5), (3, -5), (6, 0), (3, 5), (-3, 5)],
        Shape::Slab => &[(-7, -3), (7, -3), (7, 3), (-7, 3)],
        Shape::Post => &[(-3, -7), (3, -7), (3, 7), (-3, 7)],
        Shape::Bow => &[(-6, -5), (6, 5), (6, -5), (-6, 5)],
        Shape::Chevron => &[(-6, -6), (0, -1), (6, -6), (6, 0), (0, 6), (-6, 0)],
        Shape::Star => &[(0, -8), (2, -2), (8, 0), (2, 2), (0, 8), (-2, 2), (-8, 0), (-2, -2)],
        Shape::Trapezoid => &[(-3, -5), (3, -5), (7, 5), (-7, 5)],
        Shape::Plus => &[
            (-2, -7),
            (2, -7),
            (2, -2),
            (7, -2),
            (7, 2),
            (2, 2),
            (2, 7),
            (-2, 7),
            (-2, 2),
            (-7, 2),
            (-7, -2),
            (-2, -2),
        ],
    }
}

const FILLS: [Fill; 4] = [Fill::Full, Fill::Hollow, Fill::Dot, Fill::Stroke];

/// A family: colour, shape, and its members in the order of [`FILLS`].
type Family = (Color, Shape, &'static [&'static str]);

const VERMILLION: Color = Color(0xd5, 0x5e, 0x00);
const BLUE: Color = Color(0x00, 0x72, 0xb2);
const GREEN: Color = Color(0x00, 0x9e, 0x73);
const SKY: Color = Color(0x56, 0xb4, 0xe9);
const ORANGE: Color = Color(0xe6, 0x9f, 0x00);
const PURPLE: Color = Color(0xcc, 0x79, 0xa7);
const WINE: Color = Color(0x88, 0x22, 0x55);
const INDIGO: Color = Color(0x33, 0x22, 0x88);
const OLIVE: Color = Color(0x99, 0x99, 0x33);
const TEAL: Color = Color(0x44, 0xaa, 0x99);
const MAROON: Color = Color(0x66, 0x11, 0x00);
const NAVY: Color = Color(0x00, 0x44, 0x88);
const ROSE: Color = Color(0xcc, 0x66, 0x77);
const BRONZE: Color = Color(0x8a, 0x70, 0x20);
const BLACK: Color = Color(0x00, 0x00, 0x00);

const FAMILIES: &[Family] = &[
    (VERMILLION, Shape::Disc, &["newreno", "newreno+dyn-delack", "newreno+delack", "newreno+ecn"]),
    (ORANGE, Shape::Funnel, &["newreno-cwl", "cwl", "tcp-2", "tcp-3"]),
    (BLUE, Shape::Triangle, &["tcp-ap", "tcp-ap+dyn-delack", "tcp-ap+delack", "tcp-ap-mad"]),
    (
        GREEN,
        Shape::Square,
        &["tcp-ap-released", "tcp-ap-released+delack", "tcp-ap-released+dyn-delack", "tcp-ap-released-karn"],
    ),
    (SKY, Shape::Diamond, &["tcp-ap-sync", "tcp-ap-sync+dyn-delack"]),
    (PURPLE, Shape::Cross, &["udp-paced", "udp", "udp+llap"]),
    (WINE, Shape::Pentagon, &["tpa-2", "tpa-3", "tpa*-3", "tpa*-2"]),
    (INDIGO, Shape::Hexagon, &["tpa-ap-2", "tpa-ap-3", "tpa*-ap-3", "tpa*-ap-2"]),
    (TEAL, Shape::Slab, &["newreno+llap", "tcp-ap+llap", "newreno+tack", "tcp-daa"]),
    (OLIVE, Shape::Post, &["dcc", "few", "lred", "dack"]),
    (MAROON, Shape::Bow, &["cubic", "cubic+delack"]),
    (NAVY, Shape::Chevron, &["tcp-ap-oid+delack", "tcp-ap-oid"]),
    (ROSE, Shape::Star, &["bbr", "copa"]),
    (BRONZE, Shape::Trapezoid, &["paced-pairs", "paced-pairs-8", "flush", "quiet-train+contending"]),
    (BLACK, Shape::Plus, &["quiet-train", "quiet-train+marks", "quiet-train+competitive", "quiet-train-solo"]),
];

/// Shapes of curves that are not named after a transport. They are grey and are distinguished by
/// shape and fill.
const OTHERS: [Shape; 6] = [Shape::Bow, Shape::Disc, Shape::Square, Shape::Triangle, Shape::Diamond, Shape::Funnel];
const GREY: Color = Color(0x77, 0x77, 0x77);

/// Look of the transport called `name`; the name must not contain parameters. `None` if no look is
/// defined for the transport.
pub fn look(name: &str) -> Option<Look> {
    FAMILIES.iter().find_map(|(color, shape, members)| {
        let number = members.iter().position(|other| *other == name)?;
        Some(Look { color: *color, shape: *shape, fill: FILLS[number] })
    })
}

/// Look number `number` for curves without a defined look.
pub fn other(number: usize) -> Look {
    Look { color: GREY, shape: OTHERS[number % OTHERS.len()], fill: FILLS[number / OTHERS.len() % FILLS.len()] }
}

/// Colour in CSS notation.
pub fn css(color: Color) -> String {
    format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2)
}

/// Luminance of the background of dark pages, about #161616, and the contrast that lines have to
/// it. WCAG 2.1, 1.4.11, requires a contrast of 3.
const DARK_PAPER: f64 = 0.008;
const CONTRAST: f64 = 3.5;

/// Relative luminance of a colour (WCAG 2.1), 0 to 1.
fn luminance(color: Color) -> f64 {
    let linear = |part: u8| {
        let part = f64::from(part) / 255.0;
        if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(color.0) + 0.7152 * linear(color.1) + 0.0722 * linear(color.2)
}

/// Colour on a dark background. A colour is lightened until the contrast is sufficient; black
/// becomes white.
fn on_dark(color: Color) -> Color {
    if color == BLACK {
        return Color(255, 255, 255);
    }
    let mixed = |white: u16| {
        let part = |part: u8| (u16::from(part) + (255 - u16::from(part)) * white / 20) as u8;
        Color(part(color.0), part(color.1), part(color.2))
    };
    let seen = |color: &Color| (luminance(*color) + 0.05) / (DARK_PAPER + 0.05) >= CONTRAST;
    (0..=20).map(mixed).find(seen).unwrap_or(Color(255, 255, 255))
}

/// Style sheet for dark pages. It lightens the colours of transports that would not be visible
/// there.
pub fn dark_style() -> String {
    let rule = |color: Color| {
        let (own, light) = (css(color), css(on_dark(color)));
        format!("svg [stroke=\"{own}\"] {{ stroke: {light}; }} svg [fill=\"{own}\"] {{ fill: {light}; }}\n")
    };
    let rules: String =
        FAMILIES.iter().map(|family| family.0).filter(|&color| on_dark(color) != color).map(rule).collect();
    format!("@media (prefers-color-scheme: dark) {{\n{rules}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_dark_paper_black_is_light_and_what_is_seen_stays() {
        // The luminances of WCAG 2.1 at the ends and of pure green.
        assert_eq!((luminance(BLACK), luminance(Color(255, 255, 255))), (0.0, 1.0));
        assert!((luminance(Color(0, 255, 0)) - 0.7152).abs() < 1e-12);
        assert_eq!(on_dark(SKY), SKY);
        let style = dark_style();
        assert!(style.contains("svg [stroke=\"#000000\"] { stroke: #FFFFFF; }"), "{style}");
        assert!(!style.contains("#56B4E9"), "{style}");
        for (color, ..) in FAMILIES {
            assert!(luminance(on_dark(*color)) >= 3.0 * (DARK_PAPER + 0.05) - 0.05, "{color:?}");
        }
    }

    #[test]
    fn no_two_transports_look_alike_even_without_colour() {
        for (number, (color, shape, members)) in FAMILIES.iter().enumerate() {
            assert!(members.len() <= FILLS.len());
            for (other_color, other_shape, other_members) in &FAMILIES[..number] {
                assert!(color != other_color && shape != other_shape);
                assert!(members.iter().all(|name| !other_members.contains(name)));
            }
        }
        // Nor in the dark.
        let light: Vec<Color> = FAMILIES.iter().map(|family| on_dark(family.0)).collect();
        for (number, color) in light.iter().enumerate() {
            assert!(!light[..number].contains(color), "{color:?}");
        }
        let others: Vec<Look> = (0..12).map(other).collect();
        for (number, look) in others.iter().enumerate() {
            assert!(!others[..number].contains(look));
        }
    }
}
