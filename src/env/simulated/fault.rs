//! The fault model: what may go wrong, and the script that makes it go wrong.
//!
//! # The fault model
//!
//! A **power cut** stops the machine at a mutating call: that call and all later ones fail, also reads. What was
//! synced survives. Of the rest, any part may survive:
//!
//! * a write: whole, lost, or torn at multiples of 512 bytes of the file; a length that it gave the file may survive
//!   without its bytes, which then read as zeros;
//! * a length set or a hole punched: done or undone, each on its own;
//! * changes to a directory: a prefix in order ([`Journal::Ext4Like`](super::Journal::Ext4Like)) or any subset
//!   ([`Journal::None`](super::Journal::None)); a rename is atomic either way;
//! * the effect of the interrupted call itself, as of any un-synced one.
//!
//! A **failed call** has no effect, or for a write with `partial` the first half of it. A **failed sync** leaves the
//! un-synced operations readable, but no later sync writes them although it succeeds; whether they reached the device
//! is unknown. So does a **failed write-back** with those that write to its range. Advice to **read ahead** that is struck does nothing, and nobody hears of it. A **full device** stores what fits of a write and then refuses.
//!
//! A device does not lie about a sync, does not reorder a sync before a write that it covers, and returns what was
//! stored. Tests inflict rot with [`SimEnv::overwrite`](super::SimEnv::overwrite).

use std::io;
use std::path::Path;

use rustix::io::Errno;

/// The calls that can fail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "each is named after the method of `Env` or `File`")]
pub enum Operation {
    CreateDir,
    List,
    SyncDir,
    Create,
    Open,
    Rename,
    Remove,
    Lock,
    Canonical,
    Space,
    Spawn,
    Len,
    ReadAt,
    ReadAhead,
    WriteAt,
    WriteBack,
    Sync,
    SetLen,
    Punch,
    Allocated,
    NextData,
    Links,
}

impl Operation {
    /// Whether the call changes the disk or makes a change durable.
    #[must_use]
    pub fn is_mutating(self) -> bool {
        match self {
            Self::CreateDir | Self::SyncDir | Self::Create | Self::Rename | Self::Remove => true,
            Self::WriteAt | Self::Sync | Self::SetLen | Self::Punch => true,
            Self::List | Self::Open | Self::Lock | Self::Canonical | Self::Space | Self::Spawn => false,
            // What reaches the device may still be lost.
            Self::WriteBack => false,
            Self::Len | Self::ReadAt | Self::ReadAhead | Self::Allocated | Self::NextData | Self::Links => {
                false
            }
        }
    }
}

/// The calls that a [`FaultRule`] strikes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultTarget {
    /// The call with this index, as [`SimEnv::calls`](super::SimEnv::calls) counts.
    Call(u64),
    /// A call of this operation.
    Matching {
        /// The operation.
        operation: Operation,
        /// How the path ends; for a rename the new name.
        path_suffix: String,
        /// How many matching calls pass unharmed before.
        skipped: u64,
    },
}

/// The error that a struck call returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultError {
    /// EIO.
    Io,
    /// ENOSPC.
    NoSpace,
    /// EMFILE.
    TooManyFiles,
    /// EROFS.
    ReadOnly,
    /// EOPNOTSUPP.
    Unsupported,
}

impl From<FaultError> for io::Error {
    fn from(error: FaultError) -> Self {
        match error {
            FaultError::Io => Errno::IO.into(),
            FaultError::NoSpace => Errno::NOSPC.into(),
            FaultError::TooManyFiles => Errno::MFILE.into(),
            FaultError::ReadOnly => Errno::ROFS.into(),
            FaultError::Unsupported => Self::new(io::ErrorKind::Unsupported, Errno::OPNOTSUPP),
        }
    }
}

/// A line of the fault script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultRule {
    /// Which call is struck.
    pub target: FaultTarget,
    /// What it returns.
    pub error: FaultError,
    /// Whether every later call that the target describes is struck too; for [`FaultTarget::Call`], every later call.
    pub sticky: bool,
    /// Whether a struck write stores its first half.
    pub partial: bool,
}

/// How far a call gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// All the way.
    Done,
    /// The power is cut during the call: whatever it does is un-synced.
    Cut,
    /// It fails; a write has stored its first half.
    Half,
    /// It fails; a sync, or a write-back, leaves its operations abandoned.
    Refused,
    /// The power is off.
    Never,
}

/// A call that fails, and how far it gets before.
pub(super) struct Struck {
    pub(super) reach: Reach,
    pub(super) error: io::Error,
}

impl Reach {
    /// Whether a call of this reach leaves any effect.
    pub(super) fn has_effect(self, operation: Operation) -> bool {
        match self {
            Self::Done | Self::Cut => true,
            Self::Half => {
                let is_write = operation == Operation::WriteAt;
                is_write || Self::Refused.has_effect(operation)
            }
            Self::Refused => {
                matches!(operation, Operation::WriteBack | Operation::Sync | Operation::SyncDir)
            }
            Self::Never => false,
        }
    }
}

/// Counts of calls, and the fault script.
#[derive(Default)]
pub(super) struct Script {
    calls: u64,
    mutations: u64,
    fired: u64,
    rules: Vec<ActiveRule>,
    /// Number of the mutating call that cuts the power.
    cut_at: Option<u64>,
    off: bool,
}

struct ActiveRule {
    rule: FaultRule,
    matched: u64,
}

impl ActiveRule {
    /// Whether the rule strikes this call, the one with index `call`.
    fn strikes(&mut self, call: u64, operation: Operation, path: &Path) -> bool {
        let (position, first) = match &self.rule.target {
            FaultTarget::Call(index) => (call, *index),
            FaultTarget::Matching { operation: wanted, path_suffix, skipped } => {
                if *wanted != operation || !path.to_string_lossy().ends_with(path_suffix.as_str()) {
                    return false;
                }
                self.matched += 1;
                (self.matched - 1, *skipped)
            }
        };
        position == first || self.rule.sticky && position > first
    }
}

impl Script {
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    pub(super) fn mutations(&self) -> u64 {
        self.mutations
    }

    pub(super) fn fired(&self) -> u64 {
        self.fired
    }

    /// Cuts the power at the mutating call after `others` more.
    pub(super) fn cut_after(&mut self, others: u64) {
        self.cut_at = Some(self.mutations + others);
    }

    pub(super) fn add(&mut self, rule: FaultRule) {
        self.rules.push(ActiveRule { rule, matched: 0 });
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }

    /// Counts a call and decides whether it succeeds.
    pub(super) fn judge(&mut self, operation: Operation, path: &Path) -> Result<(), Struck> {
        let call = self.calls;
        self.calls += 1;
        if self.off {
            return Err(Struck { reach: Reach::Never, error: power_off() });
        }
        if operation.is_mutating() {
            self.mutations += 1;
            if self.cut_at == Some(self.mutations - 1) {
                self.off = true;
                return Err(Struck { reach: Reach::Cut, error: power_off() });
            }
        }
        let mut struck = None;
        // Every rule counts its matches, also calls that another rule strikes first.
        for active in &mut self.rules {
            if active.strikes(call, operation, path) {
                let reach = if active.rule.partial { Reach::Half } else { Reach::Refused };
                struck.get_or_insert(Struck { reach, error: active.rule.error.into() });
            }
        }
        match struck {
            None => Ok(()),
            Some(struck) => {
                self.fired += 1;
                Err(struck)
            }
        }
    }
}

fn power_off() -> io::Error {
    io::Error::other("the power is off")
}
