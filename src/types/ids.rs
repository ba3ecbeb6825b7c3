//! Identifiers. Each kind has a counter of its own, and no id is ever used twice, not even after a crash.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $label:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl $name {
            /// The id that follows this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($label, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// A table (logical SSTable). Stable when the table moves to another level, pack or device.
    TableId(u64), "t"
);
id!(
    /// A pack: the physical file that one job writes and that holds the job's tables.
    PackId(u64), "p"
);
id!(
    /// Age of a sorted run: among runs that overlap, the one with the higher epoch holds the newer entries.
    Epoch(u64), "e"
);
id!(
    /// Number of a catalog edit, in the order in which edits became durable.
    EditNo(u64), "edit"
);
id!(
    /// A segment of the write-ahead log.
    SegmentId(u64), "w"
);
id!(
    /// A device: one directory that Terrace owns.
    DeviceId(u16), "d"
);
id!(
    /// A keyspace: an independent tree that shares log, sequence numbers and caches with the others.
    KeyspaceId(u32), "k"
);
