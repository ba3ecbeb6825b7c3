//! A sample of the suite `corruption`.

use terrace_torture::allocation::Measuring;
use terrace_torture::corruption::Corruption;
use terrace_torture::runner::pass_sample;

/// Damage may not lead to large allocations.
#[global_allocator]
static ALLOCATOR: Measuring = Measuring;

#[test]
fn damage_ends_in_an_error_that_names_the_place_or_in_the_right_answer() {
    pass_sample(&Corruption, 1);
}
