//! Transfers of TPA between processes that are killed at random. Acknowledged data is never
//! missing, and every aborted transfer is reported as aborted.

use meshpace_testing::is_slow_run;
use meshpace_testing::ports::spare_port;
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Number of simultaneous pairs of processes.
const AT_ONCE: u64 = 6;

/// Size of a transfer, bytes.
const BYTES: u64 = 3_000_000;

/// Process that is killed in a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Victim {
    Nobody,
    Sender,
    Receiver,
}

fn meshpace(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshpace"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "processes take their time")]
fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Waits for the end of a process that is expected to end. It is killed after two minutes.
fn end_of(mut child: Child) -> Output {
    for _ in 0..1200 {
        if child.try_wait().unwrap().is_some() {
            return child.wait_with_output().unwrap();
        }
        pause(100);
    }
    child.kill().unwrap();
    panic!("it never ends: {:?}", child.wait_with_output());
}

/// Returns the record that a process printed about its transfer, if there is one.
fn record(output: &Output) -> Option<Value> {
    serde_json::from_slice(&output.stdout).ok()
}

/// Makes one transfer. Returns whether the sender and whether the receiver reported success.
fn round(victim: Victim, after: u64) -> (bool, bool) {
    let port = spare_port().to_string();
    let same = ["--transport", "tpa-ap-3", "--hops", "4", "--channel-rate", "20 Mbit/s", "--port", &port];
    let json = ["--format", "json"];
    let mut receiver = meshpace(&[&["recv"][..], &same, &json, &["--count", "1", "--seconds", "100"]].concat());
    let bytes = BYTES.to_string();
    let send = [&["send", "127.0.0.1"][..], &same, &json, &["--bytes", &bytes]].concat();
    // The sender fails at once until the receiver listens, so it is started repeatedly.
    let mut sender = meshpace(&send);
    for _ in 0..100 {
        pause(300);
        match sender.try_wait().unwrap() {
            Some(status) if !status.success() => sender = meshpace(&send),
            _ => break,
        }
    }
    pause(after);
    match victim {
        Victim::Nobody => {}
        Victim::Sender => sender.kill().unwrap(),
        Victim::Receiver => receiver.kill().unwrap(),
    }
    let (sender, receiver) = (end_of(sender), end_of(receiver));
    let (sent, received) = (record(&sender), record(&receiver));
    let delivered = |record: &Value| record["flows"][0]["delivered_bytes"].as_u64().unwrap();
    // An end that reports success has all data. The other end then reports success, too, unless it
    // was killed afterwards.
    if sender.status.success() {
        assert_eq!(sent.as_ref().map(delivered), Some(BYTES));
        assert!(victim == Victim::Receiver || receiver.status.success(), "{receiver:?}");
    }
    if let Some(record) = &received {
        let completed = record["completed"].as_bool().unwrap();
        assert_eq!(completed, receiver.status.success(), "{record}");
        assert_eq!(completed, record["error"].is_null(), "{record}");
        assert!(!completed || delivered(record) == BYTES, "{record}");
        // All data that was acknowledged to the sender is in the receiver's record.
        if let Some(sent) = &sent {
            assert!(delivered(record) >= delivered(sent), "{record} {sent}");
        }
    } else {
        // The receiver was killed, or the sender was killed before it connected.
        assert_ne!(victim, Victim::Nobody, "{receiver:?}");
    }
    if victim == Victim::Nobody {
        assert!(sender.status.success() && receiver.status.success(), "{sender:?} {receiver:?}");
    }
    (sender.status.success(), received.is_some_and(|record| record["completed"] == true))
}

#[test]
fn processes_killed_at_random_lose_nothing_and_tell_every_abort() {
    if !is_slow_run(
        "ten minutes of transfers between processes that are killed; MESHPACE_SOAK_SECONDS for another time",
    ) {
        return;
    }
    let seconds = std::env::var("MESHPACE_SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(600);
    #[expect(clippy::disallowed_methods, reason = "a soak lasts for a while")]
    let end = Instant::now() + Duration::from_secs(seconds);
    let counts = std::thread::scope(|scope| {
        let one = |lane: u64| {
            let mut state = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(lane + 1);
            let mut random = move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            let mut counts = [[0u32; 4]; 3];
            #[expect(clippy::disallowed_methods, reason = "a soak lasts for a while")]
            while Instant::now() < end {
                let victim = [Victim::Nobody, Victim::Sender, Victim::Receiver][(random() >> 33) as usize % 3];
                let (sent, received) = round(victim, (random() >> 33) % 3000);
                counts[victim as usize][usize::from(sent) * 2 + usize::from(received)] += 1;
            }
            counts
        };
        let lanes: Vec<_> = (0..AT_ONCE).map(|lane| scope.spawn(move || one(lane))).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).collect::<Vec<_>>()
    });
    for (index, victim) in [Victim::Nobody, Victim::Sender, Victim::Receiver].into_iter().enumerate() {
        let sum = |outcome: usize| counts.iter().map(|counts| counts[index][outcome]).sum::<u32>();
        eprintln!(
            "killed: {victim:?}; both well {}, only the sender {}, only the receiver {}, both say it was broken off {}",
            sum(3),
            sum(2),
            sum(1),
            sum(0)
        );
        let rounds: u32 = (0..4).map(sum).sum();
        assert!(rounds > 0, "nobody of this kind in {seconds} s");
    }
}
