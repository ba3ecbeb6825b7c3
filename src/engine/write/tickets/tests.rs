//! What tickets tell, and when, whatever callbacks do.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;
use crate::env::simulated::{SimConfig, SimEnv};
use crate::env::sync::Mutex;

/// Calls `body` in a simulation.
fn simulated(body: impl FnOnce(Arc<Tickets>, Arc<SimEnv>) + Send + 'static) {
    SimEnv::run(SimConfig::default(), |env| body(Tickets::new(env.clone()), env));
}

#[test]
fn callbacks_come_in_the_order_of_their_writes_and_the_first_outcome_stands() {
    simulated(|tickets, env| {
        let told = Arc::new(Mutex::new(Vec::new()));
        let note = |seq: u64| {
            let told = told.clone();
            let callback = move |outcome: Result<()>| told.lock().push((seq, outcome.is_ok()));
            tickets.on_durable(Seq(seq), Box::new(callback)).unwrap();
        };
        [3, 1, 2, 9].into_iter().for_each(note);
        tickets.credit(Seq(2));
        assert_eq!(
            [1, 2, 3].map(|seq| tickets.outcome(Seq(seq)).map(|known| known.is_ok())),
            [Some(true), Some(true), None]
        );
        tickets.credit(Seq(3));
        tickets.end(&Error::new(ErrorKind::Closed, "closed"));
        tickets.credit(Seq(9));
        assert!(tickets.outcome(Seq(9)).is_some_and(|known| known.is_err()), "the first outcome stands");
        // After the end, too, whoever asks is told.
        note(1);
        note(8);
        while told.lock().len() < 6 {
            env.sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(*told.lock(), [(1, true), (2, true), (3, true), (9, false), (1, true), (8, false)]);
    });
}

#[test]
fn a_callback_that_panics_ends_itself_alone() {
    simulated(|tickets, env| {
        let called = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let count = called.clone();
            let callback = move |_: Result<()>| {
                // As a panic does, without its report on the terminal.
                assert!(count.fetch_add(1, SeqCst) < 10);
                std::panic::resume_unwind(Box::new("fault of the caller"));
            };
            tickets.on_durable(Seq(1), Box::new(callback)).unwrap();
        }
        tickets.credit(Seq(1));
        while called.load(SeqCst) < 3 {
            env.sleep(std::time::Duration::from_millis(1));
        }
        tickets.end(&Error::new(ErrorKind::Closed, "closed"));
    });
}
