//! Gives the shared library the name by which programs look for it when they start.

fn main() {
    // Before 1.0 any minor version may change the interface.
    let version = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")].join(".");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libterrace.so.{version}");
    println!("cargo::rerun-if-changed=build.rs");
}
