//! Options of values that lie apart from their keys: where they lie.

/// In which order a flush writes values that lie apart ([`KeyspaceOptions::separate_from`](crate::KeyspaceOptions::separate_from)).
///
/// ```
/// use terrace::tree::ValueOrder;
/// assert_eq!(ValueOrder::default(), ValueOrder::Key);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum ValueOrder {
    /// By their keys, as a scan reads them. Values that were overwritten in memory are not written.
    #[default]
    Key,
    /// As they came, overwritten ones too: the order of a log. It stands for stores that keep values in their log (Lu et al., "WiscKey:
    /// Separating Keys from Values in SSD-conscious Storage", FAST 2016, section 3.2).
    Log,
}
