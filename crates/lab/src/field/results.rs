//! Goodputs that other programs have measured: iperf3's JSON, iperf's CSV, flent's data files.
//!
//! - `iperf3 -J`: `end.sum_received.bits_per_second` for TCP, and `end.sum` less its losses for UDP
//!   (iperf3(1)).
//! - `iperf -y C`: one line for each run. The last three columns are the interval, the bytes and
//!   the rate. Some builds for 32-bit processors print zero for the bytes and put the bytes in the
//!   column of the rate (seen in public data of 2017). The rate is then computed from the bytes.
//! - flent (`*.flent` and `*.flent.gz`): the mean of every series of `results` whose name begins
//!   with TCP, in Mbit/s. Totals and averages of several series are left out (flent's manual, "The
//!   data file format").

use miniz_oxide::inflate::decompress_to_vec_with_limit;
use serde_json::Value;

/// Largest size of a decompressed file, bytes.
const MAX_BYTES: usize = 256 << 20;

/// A measured goodput.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Name of the measurement in the program that made it.
    pub name: String,
    /// Received payload, bit/s.
    pub goodput_bps: f64,
}

/// Reads the measurements in a file, one entry per run or series. The kind of the file is
/// recognized by its content.
///
/// # Errors
/// A sentence that says what is wrong with the file, and where.
pub fn read(bytes: &[u8]) -> Result<Vec<Measured>, String> {
    let inflated;
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        inflated = gunzip(bytes).map_err(|why| format!("compressed: {why}"))?;
        &inflated[..]
    } else {
        bytes
    };
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let found = if text.trim_start().starts_with('{') {
        let document: Value = serde_json::from_str(text).map_err(|error| format!("line {}: {error}", error.line()))?;
        if document.get("end").is_some() { iperf3(&document)? } else { flent(&document)? }
    } else {
        iperf(text)?
    };
    if found.is_empty() {
        return Err("it has no goodput".to_owned());
    }
    if let Some(one) = found.iter().find(|one| !(0.0..=f64::MAX).contains(&one.goodput_bps)) {
        return Err(format!("{}: {} bit/s is not a goodput", one.name, one.goodput_bps));
    }
    Ok(found)
}

/// Content of a gzip file (RFC 1952, 2.3), which consists of a header, its optional fields,
/// deflated data, CRC-32 and length.
fn gunzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const HEADER_CRC: u8 = 2;
    let short = "it ends too early";
    let flags = *bytes.get(3).ok_or(short)?;
    let mut rest = bytes.get(10..).ok_or(short)?;
    if flags & EXTRA != 0 {
        let length = usize::from(u16::from_le_bytes([*rest.first().ok_or(short)?, *rest.get(1).ok_or(short)?]));
        rest = rest.get(2 + length..).ok_or(short)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let end = rest.iter().position(|byte| *byte == 0).ok_or(short)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & HEADER_CRC != 0 {
        rest = rest.get(2..).ok_or(short)?;
    }
    let (data, trailer) = rest.split_at(rest.len().checked_sub(8).ok_or(short)?);
    let inflated = decompress_to_vec_with_limit(data, MAX_BYTES).map_err(|error| error.to_string())?;
    if trailer[..4] != crc32fast::hash(&inflated).to_le_bytes() {
        return Err("the checksum does not match".to_owned());
    }
    Ok(inflated)
}

fn iperf3(document: &Value) -> Result<Vec<Measured>, String> {
    if let Some(error) = document.get("error").and_then(Value::as_str) {
        return Err(format!("iperf3 failed: {error}"));
    }
    let rate = |at: &str| document.pointer(at).and_then(Value::as_f64);
    let lost = rate("/end/sum/lost_percent").unwrap_or(0.0);
    let udp = rate("/end/sum/bits_per_second").map(|sent| sent * (1.0 - lost / 100.0));
    let goodput_bps = rate("/end/sum_received/bits_per_second").filter(|rate| *rate > 0.0).or(udp);
    let goodput_bps = goodput_bps
        .ok_or("neither end.sum_received nor end.sum has bits_per_second: the output of iperf3 -J is incomplete")?;
    Ok(vec![Measured { name: "iperf3".to_owned(), goodput_bps }])
}

fn iperf(text: &str) -> Result<Vec<Measured>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(line, row)| {
            let read = || {
                let columns: Vec<&str> = row.split(',').collect();
                let [.., interval, bytes, rate] = columns[..] else { return None };
                let (begin, end) = interval.split_once('-')?;
                let seconds = end.parse::<f64>().ok()? - begin.parse::<f64>().ok()?;
                let (bytes, rate) = (bytes.parse::<f64>().ok()?, rate.parse::<f64>().ok()?);
                let goodput_bps = if bytes == 0.0 { 8.0 * rate / seconds } else { rate };
                (columns.len() >= 9 && seconds > 0.0)
                    .then(|| Measured { name: format!("run {}", line + 1), goodput_bps })
            };
            read().ok_or_else(|| format!("line {}: expected what iperf -y C, iperf3 -J or flent writes", line + 1))
        })
        .collect()
}

fn flent(document: &Value) -> Result<Vec<Measured>, String> {
    let results = document.get("results").and_then(Value::as_object);
    let results = results.ok_or("it has neither \"end\" of iperf3 nor \"results\" of flent")?;
    let of_tcp = results.iter().filter(|(name, _)| {
        name.starts_with("TCP") && !["sum", "totals", "avg"].iter().any(|word| name.to_lowercase().contains(word))
    });
    let mean = |(name, series): (&String, &Value)| {
        let values: Vec<f64> = series.as_array()?.iter().filter_map(Value::as_f64).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        mean.is_finite().then(|| Measured { name: name.clone(), goodput_bps: 1e6 * mean })
    };
    Ok(of_tcp.filter_map(mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    /// A gzip file as Python's gzip writes it, with the file's name.
    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut gz = vec![0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 255];
        gz.extend(b"a.flent\0");
        gz.extend(miniz_oxide::deflate::compress_to_vec(text, 6));
        gz.extend(crc32fast::hash(text).to_le_bytes());
        gz.extend((text.len() as u32).to_le_bytes());
        gz
    }

    fn rates(bytes: &[u8]) -> Vec<f64> {
        read(bytes).unwrap().iter().map(|one| one.goodput_bps).collect()
    }

    #[test]
    fn iperf3_tells_what_arrived() {
        let tcp =
            br#"{"start":{},"end":{"sum_sent":{"bits_per_second":2.1e6},"sum_received":{"bits_per_second":2.0e6}}}"#;
        assert_eq!(rates(tcp), [2.0e6]);
        let udp = br#"{"end":{"sum":{"bits_per_second":4.0e6,"lost_percent":25.0}}}"#;
        assert_eq!(rates(udp), [3.0e6]);
        assert!(read(br#"{"end":{},"error":"unable to connect"}"#).unwrap_err().contains("unable to connect"));
        assert!(read(br#"{"end":{}}"#).unwrap_err().contains("sum_received"));
    }

    #[test]
    fn iperf_prints_a_line_for_each_run() {
        let lines = "20260101000000,10.0.0.1,5001,10.0.0.2,5001,3,0.0-10.0,2500000,2000000\n\
                     20260101000020,10.0.0.1,5001,10.0.0.2,5001,3,0.0-12.5,0,1250000\n";
        // The second is of a build that prints the bytes last: 1250000 bytes in 12.5 s.
        assert_eq!(rates(lines.as_bytes()), [2.0e6, 0.8e6]);
        assert!(read(b"a,b\n").unwrap_err().contains("line 1"));
    }

    #[test]
    fn flent_has_series_and_may_be_compressed() {
        let text = br#"{"version":4,"x_values":[0,1],"results":{"TCP upload":[1.0,3.0,null],"TCP upload sum":[9.0],
            "Ping (ms) ICMP":[10.0]},"metadata":{}}"#;
        let gz = gzip(text);
        assert_eq!((rates(text), rates(&gz)), (vec![2.0e6], vec![2.0e6]));
        assert!(read(&gz[..gz.len() / 2]).unwrap_err().contains("compressed"));
        assert!(read(br#"{"results":{"Ping (ms) ICMP":[1.0]}}"#).unwrap_err().contains("has no goodput"));
        assert!(read(b"{\n\"results\": [\n}").unwrap_err().contains("line 3"));
    }
}
