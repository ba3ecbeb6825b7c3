//! The `terrace` command.

fn main() {}
