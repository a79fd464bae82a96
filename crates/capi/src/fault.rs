//! Why a call fails: an errno, and a sentence that each thread keeps of its last failure.

use libc::{c_char, c_int};
use meshpace_live::tpa::errno_of;
use std::cell::RefCell;
use std::ffi::CString;
use std::io;

/// An errno, and a sentence that says more, where there is one.
pub(crate) struct Errno {
    pub(crate) number: c_int,
    sentence: Option<String>,
}

impl From<c_int> for Errno {
    fn from(number: c_int) -> Errno {
        Errno { number, sentence: None }
    }
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Errno {
        Errno { number: errno_of(&error), sentence: Some(error.to_string()) }
    }
}

thread_local! {
    /// The sentence of the last call of this thread that failed.
    static LAST: RefCell<CString> = RefCell::default();
}

impl Errno {
    /// Becomes the calling thread's last failure.
    pub(crate) fn tell(self) {
        let sentence = self.sentence.unwrap_or_else(|| io::Error::from_raw_os_error(self.number).to_string());
        // A thread that ends may have given it back already.
        let _ = LAST.try_with(|last| *last.borrow_mut() = CString::new(sentence).unwrap_or_default());
        // SAFETY: the pointer is that of the calling thread's errno and good for as long as the thread lives.
        unsafe { *libc::__errno_location() = self.number };
    }
}

/// The sentence of the calling thread's last failure; empty if there was none.
pub(crate) fn last() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
