//! A sample of the suite `soak`.

use terrace_torture::runner::pass_sample;
use terrace_torture::soak::Soak;

/// The only test of its process, whose descriptors and threads it counts.
#[test]
fn all_that_was_taken_is_given_back() {
    pass_sample(&Soak, 1);
}
