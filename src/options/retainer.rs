//! Options of the retainer: what becomes of the tables that a compaction has replaced.

/// What becomes of the tables that a compaction has replaced.
///
/// ```
/// use terrace::tree::Retainer;
/// assert_eq!(Retainer::default(), Retainer::Drop);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Retainer {
    /// Their space is given back once no reader holds them.
    #[default]
    Drop,
}
