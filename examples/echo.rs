//! An echo over TPA: a server that returns what it reads, and a client, as one would write them with `std::net`.
//!
//!   cargo run -p meshpace-examples --bin echo -- 0.0.0.0:4000            # the server
//!   cargo run -p meshpace-examples --bin echo -- 10.0.0.7:4000 hello     # the client
//!   cargo run -p meshpace-examples --bin echo                            # both, over loopback
//!
//! `examples/echo_client.c` is the client in C.

use meshpace_live::tpa::{TpaListener, TpaStream};
use std::io::{self, Read, Write};
use std::net::Shutdown;

/// Returns what comes until the peer has written everything.
fn serve(mut stream: TpaStream) -> io::Result<()> {
    let mut buffer = [0; 8192];
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return stream.close();
        }
        stream.write_all(&buffer[..length])?;
    }
}

/// What the server at `address` makes of `text`.
fn ask(address: &str, text: &str) -> io::Result<String> {
    let mut stream = TpaStream::connect(address)?;
    stream.write_all(text.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    stream.close()?;
    Ok(answer)
}

/// Both ends over loopback.
fn both(text: &str) -> io::Result<String> {
    let listener = TpaListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(listener.accept()?.0));
        let answer = ask(&address, text)?;
        server.join().expect("the server does not panic")?;
        Ok(answer)
    })
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [] => println!("{}", both("over the hills")?),
        [address] => {
            for stream in TpaListener::bind(address)?.incoming() {
                // One at a time; a server for many starts a thread here.
                serve(stream?)?;
            }
        }
        [address, words @ ..] => println!("{}", ask(address, &words.join(" "))?),
    }
    Ok(())
}

#[test]
fn what_was_said_comes_back() {
    let long = "over the hills and far away ".repeat(10_000);
    assert_eq!(both(&long).unwrap(), long);
}
