//! `--with-flows`: runs the scenario's flows beside the programs. Each flow runs as two programs in
//! its two nodes, `meshpace recv` and `meshpace send`. TCP runs in user space on raw sockets; TPA
//! and UDP run on ordinary sockets.

use meshpace_core::{Rate, Time};
use meshpace_emulator::{Spec, address};
use meshpace_scenario::Point;
use meshpace_sim::{Flow, Traffic};
use meshpace_transport::Config;
use std::path::Path;

/// Port of the first flow. Flow N has port `PORT` + N.
const PORT: usize = 7700;

/// Returns the programs of all flows of a point, receivers first. `command` is the path of this
/// program, which is the same in all nodes.
///
/// # Errors
/// The first flow that the programs do not support, and the reason.
pub fn programs(point: &Point, command: &Path, slowdown: u64) -> Result<Vec<Spec>, String> {
    let config = &point.config;
    let command = quoted(&command.display().to_string());
    let (mut receivers, mut senders) = (Vec::new(), Vec::new());
    for (number, (flow, transport)) in config.flows.iter().zip(&point.transports).enumerate() {
        let told = |error: String| format!("--with-flows: flow.{number}: {error}");
        let kind = kind(flow, transport, config.mesh.radio.rate).map_err(told)?;
        let end = flow.stop.map_or(config.duration.as_secs_f64(), Time::as_secs_f64).min(config.duration.as_secs_f64());
        let (start, port) = (flow.start.as_secs_f64(), PORT + number);
        let lasts = ((end - start).max(0.0) * slowdown as f64).max(1.0);
        // The output goes to standard error, so that it does not mix with the output of other
        // programs. The record contains the results.
        let all = format!("--port {port} --transport {} {} --quiet >&2", quoted(transport), kind.both);
        let receiver = format!("exec {command} recv --count 1 {} {all}", kind.receiver);
        let sender = format!(
            "sleep {}; exec {command} send {} --seconds {lasts} {} {all}",
            start * slowdown as f64,
            flow.to,
            kind.sender
        );
        receivers.push(Spec { node: flow.to, command: receiver });
        senders.push(Spec { node: flow.from, command: sender });
    }
    receivers.append(&mut senders);
    Ok(receivers)
}

/// Arguments for the two programs of a flow: common ones, and those of each program.
struct Kind {
    both: String,
    receiver: String,
    sender: String,
}

fn kind(flow: &Flow, transport: &str, rate: Rate) -> Result<Kind, String> {
    if let Some((name, _)) = transport.split_once('{') {
        let message = "`meshpace send` does not take the parameters of its transport; write transport =";
        return Err(format!("{message} \"{name}\" without parameters"));
    }
    let known = format!("--channel-rate '{} bit/s'", rate.0);
    // A raw socket needs an address of the node on which it runs.
    let own = format!("--address {}", address::ipv4(flow.to));
    let of_segments = |segment: u32| format!("--segment {segment}");
    match (&flow.transport, flow.traffic) {
        (Config::Tcp(config), Traffic::Ftp) => Ok(Kind {
            both: format!("--interface raw --max-window {} {}", config.max_window, of_segments(config.segment)),
            receiver: own,
            sender: known,
        }),
        (Config::Train(config), Traffic::Ftp) => Ok(Kind {
            both: format!("--interface raw --path-rate '{} bit/s' {}", rate.0, of_segments(config.segment)),
            receiver: own,
            sender: known,
        }),
        // TPA itself computes how much payload fits into a datagram beside the encryption.
        (Config::Tpa(_), Traffic::Ftp) => Ok(Kind { both: String::new(), receiver: String::new(), sender: known }),
        (Config::Udp(config), Traffic::Cbr { rate }) => Ok(Kind {
            both: String::new(),
            receiver: String::new(),
            sender: format!("--send-rate '{} bit/s' {}", rate.0, of_segments(config.segment)),
        }),
        _ => Err("this kind of traffic cannot be emulated; expected \"ftp\", or \"cbr\" over \"udp\"".to_owned()),
    }
}

/// Quotes a text as one word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
