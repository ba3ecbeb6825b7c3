//! A sample of the suite `fault`.

use terrace_torture::fault::Fault;
use terrace_torture::runner::pass_sample;

#[test]
fn a_failed_call_is_reported_and_does_no_harm() {
    pass_sample(&Fault, 1);
}
