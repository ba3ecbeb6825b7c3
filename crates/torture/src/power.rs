//! The suite `power`: power cuts of real file systems. Everything that was synced is there afterwards, and a prefix
//! of the rest.
//!
//! A [`writer`](crate::writer) works in a volume of ext4 or XFS. The volume is shut down by the file system's own
//! ioctl, which keeps the journal from being written. The writer must end with an error. Then the volume is mounted
//! again, which replays its journal, the store is opened and judged, and the next writer goes on. Unlike a real power
//! cut, this one keeps everything that the file system has handed to the device; a device whose cache is lost is the
//! subject of the suite `blocks`.
//!
//! A sync that runs during the shutdown may return success although its data is lost: both file systems do so now and
//! then, even for a program that only writes and syncs. So the suite does not blame the store for the loss of the
//! last acknowledged record.

use std::time::Duration;

use crate::seed::Rng;
use crate::suite::{Case, Cases, Round, Share, Suite, Tally, within};
use crate::volume::{Kind, LARGE_BYTES, Volume};
use crate::writer::{History, Judge, When, Writer};

/// Chains of a whole round, on each file system.
const CHAINS: u64 = 25;
/// Power cuts of a chain; of one in a sample.
const CUTS: u64 = 20;
const SAMPLED_CUTS: u64 = 8;

/// How long a writer may take to notice, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(600);

/// The options that ext4 is mounted with, by turns.
const EXT4_OPTIONS: [&str; 4] = ["", "data=writeback", "noauto_da_alloc,nodelalloc", "data=journal"];

/// Fewer power cuts say nothing of how many lose something.
const FEW: u64 = 100;

/// The suite.
pub struct Power;

impl Suite for Power {
    fn name(&self) -> &'static str {
        "power"
    }

    fn about(&self) -> &'static str {
        "real volumes of ext4 and XFS are shut down under a process that writes"
    }

    fn hindrance(&self) -> Option<String> {
        let volume = Volume::mount_with(Kind::Ext4, LARGE_BYTES, String::new());
        volume.and_then(|volume| volume.cut()).err().map(|error| error.to_string())
    }

    fn cases(&self, round: &Round) -> Cases {
        let (seed, is_all) = (round.seed, round.share == Share::All);
        let kinds: &[Kind] = if is_all { &[Kind::Ext4, Kind::Xfs] } else { &[Kind::Ext4] };
        let (chains, cuts) = if is_all { (CHAINS, CUTS) } else { (1, SAMPLED_CUTS) };
        let chains = (0..chains).flat_map(move |number| {
            kinds.iter().map(move |&kind| Box::new(Chain { seed, kind, number, cuts }) as Box<dyn Case>)
        });
        Box::new(chains)
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        tally.require(&["power cuts"], 1)?;
        if tally.get("power cuts") < FEW {
            return Ok(());
        }
        // Otherwise the cuts came when there was nothing to lose.
        tally.require(&["cuts that lost something"], tally.get("power cuts") / 4)
    }
}

/// A volume, and the processes that write to it one after the other.
struct Chain {
    seed: u64,
    kind: Kind,
    number: u64,
    cuts: u64,
}

impl Chain {
    fn history(&self) -> History {
        History { seed: self.seed ^ self.number << 32, chain: self.number }
    }

    fn mount_options(&self) -> &'static str {
        match self.kind {
            Kind::Ext4 => EXT4_OPTIONS[self.number as usize % EXT4_OPTIONS.len()],
            _ => "",
        }
    }

    /// Runs a writer until it is time, shuts the volume down, and returns the number of the last record that was acknowledged,
    /// if any.
    fn run_and_cut(&self, volume: &Volume, when: &When) -> Option<u64> {
        let mut writer = Writer::start(&volume.place().join("store"), &self.history(), false);
        let mut acknowledgements = writer.acknowledgements();
        let last = when.wait(&mut acknowledgements);
        volume.cut().unwrap();
        let last = acknowledgements.last().or(last);
        let status = writer.wait(PATIENCE);
        assert!(status.code().is_some(), "the writer did not end by itself: {status}");
        assert!(!status.success(), "the writer has noticed nothing");
        last
    }
}

impl Case for Chain {
    fn name(&self) -> String {
        format!("{}/chain {}", self.kind.name(), self.number)
    }

    fn options(&self) -> String {
        let (name, options) = self.history().shape();
        format!("mounted with \"{}\"; {name}: {options:?}", self.mount_options())
    }

    fn run(&self, tally: &Tally) {
        let mut random = Rng::new(self.history().seed);
        let volume = Volume::mount_with(self.kind, LARGE_BYTES, self.mount_options().into()).unwrap();
        let (mut judge, mut at) = (Judge::new(self.history()), 0);
        for cut in 0..self.cuts {
            let when = When::draw(&mut random);
            within(
                || format!("power cut {cut}, {when:?}"),
                || {
                    let acknowledged = self.run_and_cut(&volume, &when).unwrap_or(at);
                    volume.mount_again().unwrap();
                    // What was found by the last opening is durable, too.
                    let durable = self.history().durable(acknowledged.saturating_sub(1)).max(at);
                    let expected = durable..=acknowledged + 1;
                    let last = judge.judge(&volume.place().join("store"), expected, &mut random);
                    tally.add("records", last - at);
                    tally.add("cuts that lost something", u64::from(last < acknowledged));
                    at = last;
                },
            );
            tally.add("power cuts", 1);
        }
    }
}
