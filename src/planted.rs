//! Bugs that are planted to see whether the tests notice them.
//!
//! `planted!` stands, with a bug's name, where that bug would be made. In every normal build it is the constant `false`, and
//! nothing of it is left. A build with `--cfg terrace_planted` asks whether the name is the one in the environment variable
//! `TERRACE_PLANT`: one build serves for all, and without the variable it behaves as any other.
//!
//! `docs/planted-bugs.md` lists the names, what each breaks and who notices; the crate `terrace-planted-bugs` runs them. Nothing
//! but tests may be built so.

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
