//! Tests of the engine on this environment.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod store;
