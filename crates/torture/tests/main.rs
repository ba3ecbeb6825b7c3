//! Samples of the suites, and tests of their parts and judges, in one program, so that a change of the store links one.
//!
//! `corruption` replaces the allocator and `soak` counts resources of its process, so each of these is a program of
//! its own.

mod crash;
mod fault;
mod image;
mod planted;
mod reduce;
