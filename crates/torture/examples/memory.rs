//! The figures of `docs/benchmarks/memory.md`: the most memory that is resident in each step, in MiB.
//!
//! `cargo run --release -p terrace-torture --example memory -- MIB [VALUES [ROWS]]`: beside a budget of so many MiB, with 60 values of 10 to
//! 34 MB, a batch of 3,000,000 rows and a transaction of a third as many, or as many as are named; and the opening of a store that
//! was killed with a log of three quarters of the budget. On Linux. `TMPDIR` names where the store is.
#![expect(clippy::unwrap_used, reason = "what fails ends the program")]
#![expect(clippy::print_stdout, reason = "a program that prints its figures")]

use terrace::{Db, Options};
use terrace_torture::memory::{self, Step};

fn print(steps: Vec<Step>) {
    for (step, bytes) in steps {
        println!("{step:26} {:6}", bytes >> 20);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().unwrap());
    let mib = arguments.next().unwrap();
    let (values, rows) = (arguments.next().unwrap_or(60), arguments.next().unwrap_or(3_000_000));
    let each = |work: &dyn Fn(&Db) -> Vec<Step>| {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { memory_bytes: Some(mib << 20), ..Options::default() };
        let db = Db::builder(dir.path()).options(options).open().unwrap();
        print(work(&db));
        db.close().unwrap();
    };
    // First, while the heap is small.
    let dir = tempfile::tempdir().unwrap();
    print(memory::opening(dir.path(), mib * 3 / 4 << 20, mib << 20));
    each(&|db| memory::values(db, values));
    each(&|db| memory::batch(db, rows));
    each(&|db| memory::transaction(db, rows / 3));
}
