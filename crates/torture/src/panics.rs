//! Messages and places of panics, kept for the reports of cases if a program asks for it.

use std::any::Any;
use std::panic::PanicHookInfo;
use std::thread;

use terrace::env::sync::Mutex;

/// What a panic says.
#[must_use]
pub fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

/// Panics that have been caught by the hook and that no case has reported yet: what they say, and where they were.
static PANICS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// From here on, panics are kept for the reports instead of being printed.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = thread::current();
        let backtrace = std::backtrace::Backtrace::capture();
        let backtrace = match backtrace.status() {
            std::backtrace::BacktraceStatus::Captured => format!("\n{backtrace}"),
            _ => String::new(),
        };
        let where_it_was = format!("{place}, in thread {:?}{backtrace}", thread.name().unwrap_or_default());
        // A caught panic's payload is what its message was, unless it is neither of these.
        let message = message_of(panic.payload());
        PANICS.lock().push((message, where_it_was));
    }));
}

/// What a panic that a case has ended with says, and where it was.
#[must_use]
pub fn explained(panic: &(dyn Any + Send)) -> String {
    let message = message_of(panic);
    let mut panics = PANICS.lock();
    match panics.iter().rposition(|(said, _)| message.ends_with(said.as_str())) {
        Some(at) => format!("{message}\n(at {})", panics.swap_remove(at).1),
        None => message,
    }
}

/// Takes the panics that no case has reported: what they say, and where they were.
pub(crate) fn take() -> Vec<(String, String)> {
    std::mem::take(&mut *PANICS.lock())
}
