//! The diary: a list of what a caller has done, for the report of a failure.

use std::sync::Arc;

use terrace::env::sync::Mutex;

/// The number of latest operations that a report lists.
const TOLD_MAX: usize = 60;

/// A list of operations by number, shared by the caller that does them and the report.
#[derive(Clone, Default)]
pub struct Diary(Arc<Mutex<(Vec<usize>, Vec<String>)>>);

impl Diary {
    /// The operation of that number begins.
    pub fn begin(&self, number: usize) {
        self.0.lock().0.push(number);
    }

    /// Says what is done in it.
    pub fn note(&self, what: String) {
        let mut diary = self.0.lock();
        let number = diary.0.last().map_or("before any".into(), ToString::to_string);
        diary.1.push(format!("{number}: {what}"));
    }

    /// The numbers of all operations.
    pub fn numbers(&self) -> Vec<usize> {
        self.0.lock().0.clone()
    }

    /// The latest operations, a line each.
    pub fn tell(&self) -> String {
        let diary = self.0.lock();
        let told = &diary.1[diary.1.len().saturating_sub(TOLD_MAX)..];
        told.iter().map(|line| format!("  {line}\n")).collect()
    }
}
