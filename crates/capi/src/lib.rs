//! Terrace in C: LevelDB's interface (`leveldb/c.h`) and Terrace's own (`terrace.h`).
//!
//! Both are thin: a function takes what C has passed, calls the engine, and hands back what came of it. `border` has what
//! all of them need for that. It is the only place where a panic is caught, and each function goes through it. Objects are
//! boxes whose pointers C holds.
//!
//! `tests/headers.rs` generates the headers from these sources, comments included. So comments on what is `pub` here speak
//! to programmers of C, and say `NULL` and `malloc`.

#![allow(non_camel_case_types, reason = "types have the names that C gives them")]

mod border;
mod failure;
pub mod leveldb;
pub mod native;
