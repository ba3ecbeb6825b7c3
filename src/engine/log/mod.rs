//! The end of the write-ahead log: the writer's lock, and what a flush may ask of the log.

pub(super) mod log_tail;
pub(super) mod recent;
pub(super) mod writer;
