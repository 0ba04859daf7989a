//! Functions that JavaScript calls. Requests and answers are stored in the memory of the module. They are JSON in
//! UTF-8, except that the request for `network` is a network file.
//!
//! JavaScript writes a request at the address that `reserve` returns and calls `answer` or `network`, which returns the
//! length of the answer. The answer is at the address that `answer_at` returns. It stays there until the next call of
//! `answer` or `network`.
#![allow(unsafe_code)] // exported functions need attributes that Rust considers unsafe

use crate::Session;
use std::cell::RefCell;

#[derive(Default)]
struct Module {
    session: Session,
    request: Vec<u8>,
    answer: Vec<u8>,
}

thread_local! {
    static MODULE: RefCell<Module> = RefCell::default();
    /// Message of the last panic.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Passes a preliminary answer for the running request to JavaScript.
    fn preliminary(at: *const u8, len: usize);
}

// SAFETY, for every `no_mangle` function below: no other function in the program has the same name.

/// Allocates `len` bytes for a request and returns their address. Also installs the hook that records panics.
#[unsafe(no_mangle)]
extern "C" fn reserve(len: usize) -> *mut u8 {
    std::panic::set_hook(Box::new(|info| {
        PANIC.with_borrow_mut(|text| *text = info.to_string());
    }));
    MODULE.with_borrow_mut(|module| {
        module.request.clear();
        module.request.resize(len, 0);
        module.request.as_mut_ptr()
    })
}

/// Answers the request and returns the length of the answer.
#[unsafe(no_mangle)]
extern "C" fn answer() -> usize {
    MODULE.with_borrow_mut(|module| {
        module.answer = match str::from_utf8(&module.request) {
            Ok(request) => {
                let mut pass = |text: &str| {
                    // SAFETY: JavaScript only reads these bytes, and only during the call.
                    unsafe { preliminary(text.as_ptr(), text.len()) }
                };
                let answer = module.session.answer(request, &mut pass);
                answer.into_bytes()
            }
            Err(error) => crate::answer::failure(&error).into_bytes(),
        };
        module.answer.len()
    })
}

/// Decodes the request as an evaluator's network, keeps the network, and returns the length of the answer.
#[unsafe(no_mangle)]
extern "C" fn network() -> usize {
    MODULE.with_borrow_mut(|module| {
        module.answer = module.session.add_network(&module.request).into_bytes();
        module.answer.len()
    })
}

/// Returns the address of the answer.
#[unsafe(no_mangle)]
extern "C" fn answer_at() -> *const u8 {
    MODULE.with_borrow(|module| module.answer.as_ptr())
}

/// Returns the length of the last panic's message, or 0 if there was no panic.
#[unsafe(no_mangle)]
extern "C" fn panic_len() -> usize {
    PANIC.with_borrow(String::len)
}

/// Returns the address of the last panic's message.
#[unsafe(no_mangle)]
extern "C" fn panic_at() -> *const u8 {
    PANIC.with_borrow(|text| text.as_ptr())
}
