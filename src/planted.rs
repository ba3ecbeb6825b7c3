//! Planted bugs: deliberate bugs that show whether the tests notice them.
//!
//! `planted!` stands, with a bug's name, at the place of that bug. In every normal build it is the constant `false`,
//! and the compiler removes it. A build with `--cfg terrace_planted` compares the name with the environment variable
//! `TERRACE_PLANT`. So one build serves for all bugs, and without the variable it behaves like any other.
//!
//! `docs/planted-bugs.md` lists the names, what each bug breaks, and which test notices it. The crate
//! `terrace-planted-bugs` runs them. Only tests may be built with this flag.

/// Whether the bug of that name is planted.
#[cfg(not(terrace_planted))]
macro_rules! planted {
    ($name:literal) => {
        false
    };
}

/// Whether the bug of that name is planted.
#[cfg(terrace_planted)]
macro_rules! planted {
    ($name:literal) => {
        $crate::planted::is_chosen($name)
    };
}

/// Whether `name` is the bug that the environment asks for.
#[cfg(terrace_planted)]
pub(crate) fn is_chosen(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("TERRACE_PLANT").ok()).as_deref() == Some(name)
}
