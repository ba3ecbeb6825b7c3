//! Decisions as pure functions of plain values: no clock, file, lock, thread or randomness.
