//! Tests of the command, a module for each subject, in one program, so that a change of the store links one.

mod bench;
mod common;
mod compact;
mod copies;
mod db_bench;
mod delete_range;
mod deletes;
mod dump;
mod keyspace;
mod load;
mod lookups;
mod manual;
mod pages;
mod paper;
mod records;
mod values;
