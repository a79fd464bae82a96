//! Bytes at the other end of C's pointers.

use crate::fault::Errno;
use libc::{c_void, socklen_t};

/// The bytes a caller points at.
///
/// # Safety
///
/// `value` points at `length` readable bytes.
pub(crate) unsafe fn bytes_in<'a>(value: *const c_void, length: socklen_t) -> Result<&'a [u8], Errno> {
    if value.is_null() {
        return Err(Errno::from(libc::EFAULT));
    }
    // SAFETY: the caller's promise; not null.
    Ok(unsafe { std::slice::from_raw_parts(value.cast::<u8>(), length as usize) })
}

/// Writes a value where a caller wants it, and its length; EINVAL if there is no room for it.
///
/// # Safety
///
/// `length` points at a length and `to` at that many writable bytes.
pub(crate) unsafe fn bytes_out(from: &[u8], to: *mut c_void, length: *mut socklen_t) -> Result<(), Errno> {
    if to.is_null() || length.is_null() {
        return Err(Errno::from(libc::EFAULT));
    }
    // SAFETY: the caller's promise: the length may be read and written, and no more bytes are written than it says.
    unsafe {
        if (*length as usize) < from.len() {
            return Err(Errno::from(libc::EINVAL));
        }
        std::ptr::copy_nonoverlapping(from.as_ptr(), to.cast::<u8>(), from.len());
        *length = from.len() as socklen_t;
    }
    Ok(())
}
