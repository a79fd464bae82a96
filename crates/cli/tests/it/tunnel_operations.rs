//! A tunnel under constant change: its far end is killed, its address changes, and its file is read
//! again. Every stream is complete or reported as aborted, and the tunnel works again within a
//! second. The test takes 30 s, or ten minutes with `MESHPACE_SLOW=1`, in network namespaces of its
//! own.

use super::tunnel::End;
use meshpace_live::testbed::{Namespace, veth};
use meshpace_testing::{Class, has, is_slow_run, skipped};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of simultaneous streams.
const STREAMS: u64 = 8;
/// Number of bytes of a stream in each direction, and number of pieces in which they are written.
const BYTES: usize = 64 << 10;
const PIECES: usize = 16;
/// Longest time without progress of a stream.
const HANGS: Duration = Duration::from_secs(45);

#[expect(clippy::disallowed_methods, reason = "real processes, real time")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}

#[expect(clippy::disallowed_methods, reason = "real processes, real time")]
fn now() -> Instant {
    Instant::now()
}

/// Results of the streams.
#[derive(Default)]
struct Tally {
    whole: AtomicU64,
    /// Streams that were aborted with an error that the program received.
    reported: AtomicU64,
    /// Streams that ended without an error although data was missing or wrong, or that never ended.
    silent: AtomicU64,
}

/// Echo server. It closes a connection when its peer has closed it.
fn serve(listener: TcpListener) {
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || {
            // After an error, the connection is reset, so that it does not seem to end in order.
            match io::copy(&mut &stream, &mut &stream) {
                Ok(_) => drop(stream.shutdown(Shutdown::Write)),
                Err(_) => reset(&stream),
            }
        });
    }
}

fn reset(stream: &TcpStream) {
    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    let _ = nix::sys::socket::setsockopt(stream, nix::sys::socket::sockopt::Linger, &linger);
}

/// Runs one stream that takes a while. Returns whether it is complete, or the error that the
/// program received.
fn stream(at: SocketAddr, seed: u64) -> io::Result<bool> {
    let content: Vec<u8> =
        (0..BYTES as u64 / 8).flat_map(|i| (i ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()).collect();
    let stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(HANGS))?;
    let mut writer = stream.try_clone()?;
    let written = content.clone();
    let writing = std::thread::spawn(move || {
        for piece in written.chunks(BYTES / PIECES) {
            writer.write_all(piece)?;
            pause(Duration::from_millis(60));
        }
        writer.shutdown(Shutdown::Write)
    });
    let mut heard = Vec::new();
    let read = (&stream).read_to_end(&mut heard);
    let _ = stream.shutdown(Shutdown::Both);
    let wrote = writing.join().expect("no panic");
    match read {
        // A time-out does not count as a report.
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(false),
        Err(error) => Err(error),
        Ok(_) if heard == content => Ok(true),
        // The stream ended in order although data is missing. An error of the writer counts as a
        // report, too.
        Ok(_) => wrote.map(|()| false),
    }
}

/// Returns the time until a new stream gets its echo.
fn back_after(at: SocketAddr, since: Instant) -> Duration {
    let try_once = || -> io::Result<()> {
        let mut stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(b"?")?;
        stream.read_exact(&mut [0])
    };
    while try_once().is_err() {
        assert!(since.elapsed() < Duration::from_secs(60), "it does not come back");
        pause(Duration::from_millis(10));
    }
    since.elapsed()
}

/// Returns the time until an open stream carries data again.
fn carries_after(stream: &mut TcpStream, since: Instant) -> io::Result<Duration> {
    stream.write_all(b"?")?;
    stream.read_exact(&mut [0])?;
    Ok(since.elapsed())
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

fn middle(spans: &mut [Duration]) -> Duration {
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied().unwrap_or_default()
}

fn write_files(directory: &Path, more: bool) {
    let key = "secret = \"secret\"\nchannel_rate = \"54 Mbit/s\"\n";
    let far = format!("[[listen]]\nname = \"far\"\naddress = \"0.0.0.0\"\nport = 7801\n{key}");
    let near = |name: &str, port: u16| {
        format!(
            "[[connect]]\nname = \"{name}\"\nhost = \"10.77.0.2\"\nport = 7801\ntransport = \"quiet-train\"\nforward = \"{port}:10.77.0.2:9000\"\n{key}"
        )
    };
    let second = if more { near("two", 8002) } else { String::new() };
    std::fs::write(directory.join("far.toml"), far).unwrap();
    std::fs::write(directory.join("near.toml"), near("one", 8001) + &second).unwrap();
}

#[test]
fn streams_are_whole_or_reported_while_everything_changes() {
    if !has("ip", "iproute2") {
        return;
    }
    let made = Namespace::new().and_then(|near| Ok([near, Namespace::new()?]));
    let joined = made.and_then(|sides| {
        let addresses = [[10, 77, 0, 1], [10, 77, 0, 2]].map(std::net::Ipv4Addr::from);
        veth::join([&sides[0], &sides[1]], "mesh", addresses, 1500).map(|()| sides)
    });
    let [near_side, far_side] = match joined {
        Ok(sides) => sides,
        Err(error) => return skipped(Class::Rights, format_args!("no network namespaces here ({error}); needs root")),
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::write(path.join("secret"), "5f".repeat(32)).unwrap();
    write_files(path, false);
    let listener = far_side.run(|| TcpListener::bind("10.77.0.2:9000").unwrap());
    std::thread::spawn(move || serve(listener));
    let file = |name: &str| path.join(name).to_str().unwrap().to_owned();
    let (far_file, near_file) = (file("far.toml"), file("near.toml"));
    let start_far = || far_side.run(|| End::start(&["run", &far_file]));
    let mut far = start_far();
    far.says("listening");
    let near = near_side.run(|| End::start(&["run", &near_file]));
    near.says("127.0.0.1:8001 goes to");
    let at: SocketAddr = "127.0.0.1:8001".parse().unwrap();
    near_side.run(|| back_after(at, now()));

    let (tally, is_over) = (Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
    let workers: Vec<_> = (0..STREAMS)
        .map(|worker| {
            let (tally, is_over) = (Arc::clone(&tally), Arc::clone(&is_over));
            near_side.spawn(move || {
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    number += 1;
                    let counter = match stream(at, worker << 32 | number) {
                        Ok(true) => &tally.whole,
                        Ok(false) => &tally.silent,
                        Err(_) => {
                            pause(Duration::from_millis(50));
                            &tally.reported
                        }
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();

    let length =
        Duration::from_secs(if is_slow_run("ten minutes of kills, address changes and reloads") { 600 } else { 30 });
    let (begin, mut last) = (now(), 1);
    let (mut restarts, mut moves, mut reloads) = (Vec::new(), Vec::new(), Vec::new());
    let mut lost = 0;
    while begin.elapsed() < length {
        // The file is read again: a second end is added or removed.
        write_files(path, reloads.len() % 2 == 0);
        let since = now();
        let pid = nix::unistd::Pid::from_raw(near.child.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGHUP).unwrap();
        near.says("read again");
        reloads.push(near_side.run(|| back_after(at, since)));
        pause(Duration::from_secs(1));
        // The address changes. Open streams continue.
        near_side.run(|| {
            let mut open = TcpStream::connect(at).unwrap();
            open.set_read_timeout(Some(HANGS)).unwrap();
            if carries_after(&mut open, now()).is_err() {
                lost += 1;
                return;
            }
            let before = format!("10.77.0.{last}/24");
            last = if last == 1 { 3 } else { 1 };
            ip(&["address", "delete", &before, "dev", "mesh"]);
            ip(&["address", "add", &format!("10.77.0.{last}/24"), "dev", "mesh"]);
            match carries_after(&mut open, now()) {
                Ok(span) => moves.push(span),
                Err(_) => lost += 1,
            }
        });
        pause(Duration::from_secs(1));
        // The far end is killed and started again.
        far.child.kill().unwrap();
        far.child.wait().unwrap();
        pause(Duration::from_millis(300));
        far = start_far();
        far.says("listening");
        restarts.push(near_side.run(|| back_after(at, now())));
        pause(Duration::from_secs(2));
    }
    is_over.store(true, Ordering::Relaxed);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    let [whole, reported, silent] =
        [&tally.whole, &tally.reported, &tally.silent].map(|count| count.load(Ordering::Relaxed));
    eprintln!("streams: {whole} whole, {reported} reported, {silent} silent; {lost} lost when the address changed");
    for (what, spans) in [("restarts", &mut restarts), ("moves", &mut moves), ("reloads", &mut reloads)] {
        let middle = middle(spans);
        let most = spans.last().copied().unwrap_or_default();
        let late = spans.iter().filter(|span| **span > Duration::from_secs(1)).count();
        let [middle_ms, most_ms] = [middle, most].map(|span| span.as_millis());
        eprintln!("{what}: {}, back after {middle_ms} ms in the median, {most_ms} at most, {late} late", spans.len());
        assert!(middle < Duration::from_secs(1), "{what}: {spans:?}");
    }
    assert_eq!(silent, 0);
    assert!(whole > STREAMS && lost == 0, "{whole} whole, {lost} lost");
}
