//! Values on command lines: rates, times and sizes with their units.

use meshpace_core::Rate;
use meshpace_settings::quantity::{Dimension, RATE, SIZE, TIME};

/// Reads a quantity above zero.
///
/// # Errors
///
/// Describes the form or range that was expected instead.
pub fn quantity(dimension: &Dimension, text: &str) -> Result<f64, String> {
    match dimension.parse(text) {
        Ok(value) if value > 0.0 => Ok(value),
        Ok(_) => Err("more than zero".to_owned()),
        Err(expected) => Err(format!("expected {expected}")),
    }
}

/// Reads a bit rate.
///
/// # Errors
///
/// Describes the form or range that was expected instead.
pub fn rate(text: &str) -> Result<Rate, String> {
    quantity(&RATE, text).map(|bps| Rate::from_bps(bps.round().max(1.0) as u64))
}

/// Reads a time, with a unit, or in seconds without one.
///
/// # Errors
///
/// Describes the form or range that was expected instead.
pub fn seconds(text: &str) -> Result<f64, String> {
    let plain = text.parse::<f64>().is_ok();
    quantity(&TIME, &if plain { format!("{text} s") } else { text.to_owned() })
}

/// Reads a size, with a unit, in bytes without one, or with k, M or G for powers of 1000.
///
/// # Errors
///
/// Describes the form or range that was expected instead.
pub fn bytes(text: &str) -> Result<u64, String> {
    let shorthand = [("k", 1e3), ("M", 1e6), ("G", 1e9)];
    let short = shorthand.iter().find_map(|(letter, factor)| {
        let number = text.strip_suffix(letter)?.parse::<f64>().ok()?;
        Some(number * factor)
    });
    let value = match (text.parse::<u64>(), short) {
        (Ok(bytes), _) => bytes as f64,
        (_, Some(value)) => value,
        _ => quantity(&SIZE, text).map_err(|error| format!("{error}, or 50M"))?,
    };
    if (1.0..=1e15).contains(&value) { Ok(value.round() as u64) } else { Err("from 1 byte to 1 PB".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_with_and_without_units() {
        assert_eq!(
            [bytes("50M"), bytes("1.5k"), bytes("7"), bytes("2 kB"), bytes("1 MiB")].map(Result::unwrap),
            [50_000_000, 1500, 7, 2000, 1_048_576]
        );
        for wrong in ["", "M", "-5M", "0", "50X", "nan", "1e99"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!([seconds("10"), seconds("500 ms")].map(Result::unwrap), [10.0, 0.5]);
        assert!(seconds("0").is_err() && seconds("10 m").is_err() && rate("2").is_err());
    }
}
