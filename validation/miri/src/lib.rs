//! `crates/capi/src/address.rs` and `memory.rs`, run under Miri with every pointer and length that a program in C may hand over.
#![allow(dead_code, reason = "the files are taken whole")]

#[path = "../../../crates/capi/src/address.rs"]
mod address;
#[path = "../../../crates/capi/src/memory.rs"]
mod memory;

/// An errno, as the C library has it.
#[derive(Debug, PartialEq)]
struct Errno(libc::c_int);

#[cfg(test)]
mod tests {
    use super::Errno;
    use super::address::{address_in, address_out};
    use super::memory::{bytes_in, bytes_out};
    use libc::{sockaddr, socklen_t};
    use std::net::SocketAddr;
    use std::ptr::{null, null_mut};

    fn addresses() -> [SocketAddr; 3] {
        ["1.2.3.4:4000", "[2001:db8::1]:65535", "[fe80::2]:1"].map(|text| text.parse().unwrap())
    }

    /// Room for any address of C, of which `length` bytes are the caller's, at any alignment: each is a piece of its own, so that a
    /// byte beyond it is none.
    fn room(length: usize, shift: usize) -> (Vec<u8>, *mut sockaddr) {
        let mut bytes = vec![0xee; shift + length];
        let pointer = bytes.as_mut_ptr().wrapping_add(shift).cast();
        (bytes, pointer)
    }

    #[test]
    fn addresses_are_written_into_any_room_and_read_from_it() {
        for (from, shift) in addresses().into_iter().flat_map(|from| (0..4).map(move |shift| (from, shift))) {
            let whole = if from.is_ipv4() { 16 } else { 28 };
            for length in 0..=40 {
                let (bytes, pointer) = room(length, shift);
                let mut told = length as socklen_t;
                // SAFETY: `told` says how many bytes there are.
                unsafe { address_out(from, pointer, &raw mut told) };
                assert_eq!(told, whole, "the whole length is told");
                // SAFETY: so many bytes are there.
                let read = unsafe { address_in(pointer, length as socklen_t) };
                if length >= whole as usize {
                    assert_eq!(read, Ok(from));
                } else {
                    assert_eq!(read, Err(Errno(libc::EINVAL)), "{length} bytes");
                }
                assert!(bytes[..shift].iter().all(|byte| *byte == 0xee));
            }
        }
    }

    #[test]
    fn pointers_to_nothing_are_refused_or_passed_over() {
        let from = addresses()[0];
        let mut length = 16;
        let (_bytes, pointer) = room(16, 0);
        // SAFETY: null is allowed, and what is not null has the bytes that are promised.
        unsafe {
            address_out(from, null_mut(), &raw mut length);
            address_out(from, pointer, null_mut());
            assert_eq!(address_in(null(), 16), Err(Errno(libc::EFAULT)));
            assert_eq!(bytes_in(null(), 1), Err(Errno(libc::EFAULT)));
            assert_eq!(bytes_out(b"1", null_mut(), &raw mut length), Err(Errno(libc::EFAULT)));
            assert_eq!(bytes_out(b"1", pointer.cast(), null_mut()), Err(Errno(libc::EFAULT)));
        }
        assert_eq!(length, 16);
    }

    #[test]
    fn values_fit_or_are_refused() {
        for length in 0..9_usize {
            let value: Vec<u8> = (0..8).collect();
            let mut to = vec![0xee_u8; length];
            let mut told = length as socklen_t;
            // SAFETY: `told` says how many bytes there are.
            let done = unsafe { bytes_out(&value, to.as_mut_ptr().cast(), &raw mut told) };
            if length < 8 {
                assert_eq!((done, told), (Err(Errno(libc::EINVAL)), length as socklen_t));
                assert!(to.iter().all(|byte| *byte == 0xee));
            } else {
                assert_eq!((done, told), (Ok(()), 8));
                // SAFETY: so many bytes are there.
                assert_eq!(unsafe { bytes_in(to.as_ptr().cast(), 8) }, Ok(&value[..]));
            }
        }
    }
}
