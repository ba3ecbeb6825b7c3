//! Bytes to values and back: every file kind, each with its byte table beside the codec.
//!
//! Little endian throughout. Decoders use checked arithmetic, cap before they allocate, and never panic.

pub mod edit;
