//! Tests of the descriptor of a stream or listener with poll(2).

use meshpace_core::Duration;
use meshpace_live::Clock;
use meshpace_live::tpa::{Descriptor, Limits, Options, TpaListener, TpaPort, TpaStream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time;

/// True for each of readable and writable if the descriptor is so now.
fn shown(descriptor: &Descriptor) -> (bool, bool) {
    let mut one = [PollFd::new(descriptor, PollFlags::IN | PollFlags::OUT)];
    poll(&mut one, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
    (one[0].revents().contains(PollFlags::IN), one[0].revents().contains(PollFlags::OUT))
}

/// Waits until the descriptor is ready for `events`.
fn wait(descriptor: &Descriptor, events: PollFlags) {
    let mut one = [PollFd::new(descriptor, events)];
    let found = poll(&mut one, Some(&Timespec { tv_sec: 60, tv_nsec: 0 })).unwrap();
    assert!(found == 1 && one[0].revents().contains(events), "{events:?} not within a minute");
}

fn pair(listener: &TpaListener) -> (TpaStream, TpaStream) {
    let port = TpaPort::with_options("127.0.0.1:0", Options::default()).unwrap();
    let client = port.connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn descriptor(of: &TpaStream) -> Descriptor {
    let descriptor = Descriptor::new().unwrap();
    of.attach(&descriptor);
    descriptor
}

/// Writes until the descriptor shows `expected`, that is until the peer's window is full too,
/// because acknowledged data makes room. Returns the number of bytes.
fn fill_until_shown(stream: &TpaStream, descriptor: &Descriptor, expected: (bool, bool)) -> usize {
    let (deadline, mut sent) = (Clock.now() + Duration::from_secs(60), 0);
    while shown(descriptor) != expected {
        match stream.try_write(&[7; 10_000]) {
            Ok(more) => sent += more,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        descriptor.refresh();
        assert!(Clock.now() < deadline, "{:?} instead of {expected:?}", shown(descriptor));
    }
    sent
}

#[test]
fn each_direction_is_shown_for_itself() {
    let listener = TpaListener::bind("127.0.0.1:0").unwrap();
    let (client, server) = pair(&listener);
    let (here, there) = (descriptor(&client), descriptor(&server));
    assert_eq!(shown(&here), (false, true));
    // Neither readable nor writable: there is nothing to read, and no room.
    let mut sent = fill_until_shown(&client, &here, (false, false));
    // Only readable.
    server.try_write(b"back").unwrap();
    wait(&here, PollFlags::IN);
    sent += fill_until_shown(&client, &here, (true, false));
    // Reading empties the buffer here. When the peer reads, there is room again.
    assert_eq!(client.try_read(&mut [0; 100]).unwrap(), 4);
    here.refresh();
    assert!(!shown(&here).0);
    let (mut got, mut buffer) = (0, [0; 100_000]);
    while got < sent {
        wait(&there, PollFlags::IN);
        match server.try_read(&mut buffer) {
            Ok(more) => got += more,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        there.refresh();
    }
    wait(&here, PollFlags::OUT);
    assert_eq!((shown(&here), shown(&there)), ((false, true), (false, true)));
}

#[test]
fn ends_and_failures_are_shown() {
    let listener = TpaListener::bind("127.0.0.1:0").unwrap();
    let (client, server) = pair(&listener);
    let (here, there) = (descriptor(&client), descriptor(&server));
    client.shutdown(Shutdown::Write).unwrap();
    wait(&there, PollFlags::IN);
    assert_eq!(server.try_read(&mut [0; 1]).unwrap(), 0);
    there.refresh();
    assert_eq!(shown(&there), (true, true));
    server.abort();
    wait(&here, PollFlags::IN);
    assert_eq!(shown(&here), (true, true));
    assert_eq!(client.try_read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_listener_is_readable_while_a_connection_waits() {
    let listener = TpaListener::bind("127.0.0.1:0").unwrap();
    let arrives = Descriptor::new().unwrap();
    assert_eq!(shown(&arrives), (false, false));
    listener.attach(&arrives);
    assert_eq!(shown(&arrives), (false, false));
    let port = TpaPort::with_options("127.0.0.1:0", Options::default()).unwrap();
    let opening = port.connect_nonblocking(listener.local_addr().unwrap()).unwrap();
    let opens = descriptor(&opening);
    wait(&opens, PollFlags::OUT);
    assert!(opening.is_open().unwrap());
    wait(&arrives, PollFlags::IN);
    listener.try_accept().unwrap();
    arrives.refresh();
    assert_eq!(shown(&arrives), (false, false));
    listener.close();
    wait(&arrives, PollFlags::IN);
}

/// A connection to a peer that reads everything, from a port whose buffers may hold 20,000 bytes for
/// one peer. That is less than the send buffer of the connection. The thread returns how many bytes
/// the peer has read.
fn with_little_memory(listener: TpaListener) -> (TpaStream, thread::JoinHandle<u64>) {
    let limits = Limits { buffers: Some(40_000), ..Limits::default() };
    let port = TpaPort::with_options("127.0.0.1:0", Options { limits, ..Options::default() }).unwrap();
    let client = port.connect(listener.local_addr().unwrap()).unwrap();
    let reads = thread::spawn(move || {
        let (mut server, _) = listener.accept().unwrap();
        std::io::copy(&mut server.by_ref(), &mut std::io::sink()).unwrap()
    });
    (client, reads)
}

/// Bytes that the tests of scarce memory send, in pieces of 10,000: two of them fill the memory to
/// the last byte.
const MUCH: usize = 1_000_000;

#[test]
fn when_memory_is_used_up_every_wake_up_of_poll_lets_something_be_written() {
    let (client, reads) = with_little_memory(TpaListener::bind("127.0.0.1:0").unwrap());
    let here = descriptor(&client);
    let (mut sent, mut wakeups, mut vain) = (0, 0, 0);
    while sent < MUCH {
        wait(&here, PollFlags::OUT);
        wakeups += 1;
        match client.try_write(&[7; 10_000]) {
            Ok(more) => sent += more,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                vain += 1;
            }
        }
        here.refresh();
    }
    assert_eq!(vain, 0, "of {wakeups} wake-ups, {sent} bytes");
    client.close().unwrap();
    assert_eq!(reads.join().unwrap(), sent as u64);
}

/// Wakes the thread of a test, as the library for C fills an event.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn when_memory_is_used_up_every_call_of_a_waker_lets_something_be_written() {
    let (client, reads) = with_little_memory(TpaListener::bind("127.0.0.1:0").unwrap());
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let context = Context::from_waker(&waker);
    let (mut sent, mut vain) = (0, 0);
    while sent < MUCH {
        if client.poll_writable(&context) == Poll::Pending {
            // A token that nobody has left cannot end the wait early: only the waker unparks this thread.
            let deadline = Clock.now() + Duration::from_secs(60);
            thread::park_timeout(time::Duration::from_secs(60));
            assert!(Clock.now() < deadline, "not woken within a minute");
        }
        match client.try_write(&[7; 10_000]) {
            Ok(more) => sent += more,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                vain += 1;
            }
        }
    }
    assert_eq!(vain, 0, "{sent} bytes");
    client.close().unwrap();
    assert_eq!(reads.join().unwrap(), sent as u64);
}
