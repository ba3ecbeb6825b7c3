//! How failures of the suite `model` are reduced.

use terrace_torture::model::reduce::{from_text, reduce, to_text};

#[test]
fn what_is_not_needed_goes() {
    let needs =
        |wanted: &'static [usize]| move |numbers: &[usize]| wanted.iter().all(|n| numbers.contains(n));
    assert_eq!(reduce((0..500).collect(), needs(&[3, 77, 490])), [3, 77, 490]);
    assert_eq!(reduce((0..9).collect(), needs(&[])), []);
    assert_eq!(reduce((0..3).collect(), needs(&[0, 1, 2])), [0, 1, 2]);
}

#[test]
fn numbers_are_text_and_back() {
    let numbers = vec![0, 1, 2, 5, 9, 10];
    assert_eq!(to_text(&numbers), "0-2,5,9-10");
    assert_eq!(from_text("0-2,5,9-10"), Some(numbers));
    assert_eq!(from_text("0-"), None);
    assert_eq!(from_text(&to_text(&[7])), Some(vec![7]));
}
