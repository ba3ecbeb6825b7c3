//! Rules that can be checked by reading the code: layers, lengths, banned calls, and documents that agree with the
//! code.
//!
//! Each rule lists its problems. `planted` shows for each rule that it finds a problem where there is one.

mod code;
mod documents;
mod planted;
mod rooms;
mod source;

use source::{Source, repository};

type Rule = fn(&[Source]) -> Vec<String>;

fn check(rule: Rule) {
    let sources = repository().expect("sources to read");
    assert!(sources.len() > 150, "only {} files found", sources.len());
    let problems = rule(&sources);
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn layers_import_one_way() {
    check(code::layers);
}

#[test]
fn rooms_of_a_layer_import_one_way() {
    check(rooms::rooms);
}

#[test]
fn the_map_has_the_rooms_in_their_order() {
    check(rooms::documented);
}

#[test]
fn files_are_short() {
    check(code::file_length);
}

#[test]
fn functions_are_short() {
    check(code::function_length);
}

#[test]
fn files_threads_time_and_output_have_one_place() {
    check(code::banned_calls);
}

#[test]
fn unsafe_code_stays_in_the_named_modules() {
    check(code::unsafe_code);
}

#[test]
fn every_module_says_what_it_is() {
    check(code::headers);
}

#[test]
fn sources_are_ascii_and_finished_and_every_test_runs() {
    check(code::plain_and_finished);
}

#[test]
fn every_file_of_tests_is_part_of_a_program() {
    check(code::programs_of_tests);
}

#[test]
fn cited_invariants_are_registered_and_registered_tests_exist() {
    check(documents::invariants);
}

#[test]
fn planted_bugs_are_listed_and_listed_ones_are_planted() {
    check(documents::planted_bugs);
}

#[test]
fn the_document_of_the_format_names_every_module() {
    check(documents::formats);
}

#[test]
fn the_map_of_the_code_is_complete() {
    check(documents::code_map);
}

#[test]
fn documents_exist_and_their_links_lead_somewhere() {
    check(documents::links);
}
