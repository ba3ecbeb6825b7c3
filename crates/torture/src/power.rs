//! The suite `power`: power cuts of real file systems. Everything that was synced is there afterwards, and a prefix
//! of the rest.
//!
//! A [`writer`](crate::writer) works in a volume of ext4 or XFS. The volume is shut down by the file system's own
//! ioctl, which keeps the journal from being written. The writer must end with an error. Then the volume is mounted
//! again, which replays its journal, the store is opened and judged, and the next writer goes on. Unlike a real power
//! cut, this one keeps everything that the file system has handed to the device; a device whose cache is lost is the
//! subject of the suite `blocks`.
//!
//! The stores of some chains are over two volumes, one of each file system. Home is shut down first: what is acknowledged in the moment
//! between rests on a sync of home, and so can no longer be.
//!
//! A sync that runs during the shutdown may return success although its data is lost: both file systems do so now and
//! then, even for a program that only writes and syncs. So the suite does not blame the store for the loss of the
//! last acknowledged record.

use std::time::Duration;

use crate::second::{Dirs, Second};
use crate::seed::Rng;
use crate::suite::{Case, Cases, Round, Share, Suite, Tally, within};
use crate::volume::{Kind, LARGE_BYTES, Volume};
use crate::writer::{History, Judge, When, Writer};

/// Chains of a whole round, on each file system.
const CHAINS: u64 = 25;
/// And of those over two volumes.
const TWO_VOLUMES: u64 = 10;
const SECONDS: [Second; 2] = [Second::Mod2, Second::Dynamic];
/// Power cuts of a chain; of one in a sample.
const CUTS: u64 = 20;
const SAMPLED_CUTS: u64 = 8;

/// How long a writer may take to notice, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(600);

/// The options that ext4 is mounted with, by turns.
const EXT4_OPTIONS: [&str; 4] = ["", "data=writeback", "noauto_da_alloc,nodelalloc", "data=journal"];

/// Counts of power cuts of two volumes, and of those that left packs on both.
const OF_TWO: &str = "power cuts of two volumes";
const ON_BOTH: &str = "of them with packs on both";

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
        let (chains, two, cuts) = if is_all { (CHAINS, TWO_VOLUMES, CUTS) } else { (1, 1, SAMPLED_CUTS) };
        let one = (0..chains).map(|number| (number, Second::None));
        let two = (0..two).map(|number| (number, SECONDS[number as usize % SECONDS.len()]));
        let chains = one.chain(two).flat_map(move |(number, second)| {
            let chain = move |&kind| Box::new(Chain { seed, kind, number, second, cuts }) as Box<dyn Case>;
            kinds.iter().map(chain)
        });
        Box::new(chains)
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        tally.require(&["power cuts"], 1)?;
        if tally.get(OF_TWO) > 0 {
            tally.require(&[ON_BOTH], tally.get(OF_TWO) / 4)?;
        }
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
    second: Second,
    cuts: u64,
}

/// The volumes of a store, and where it is on them.
struct Volumes {
    home: Volume,
    second: Option<Volume>,
    dirs: Dirs,
}

impl Volumes {
    fn mount(chain: &Chain) -> Self {
        let home = Volume::mount_with(chain.kind, LARGE_BYTES, chain.mount_options().into()).unwrap();
        let second = (chain.second != Second::None).then(|| {
            let kind = if chain.kind == Kind::Ext4 && Volume::mount(Kind::Xfs, LARGE_BYTES).is_some() {
                Kind::Xfs
            } else {
                Kind::Ext4
            };
            Volume::mount_with(kind, LARGE_BYTES, String::new()).unwrap()
        });
        let other = second.as_ref().map(|volume| volume.place().join("store"));
        let dirs = Dirs { home: home.place().join("store"), other };
        Self { home, second, dirs }
    }

    fn all(&self) -> impl Iterator<Item = &Volume> {
        [&self.home].into_iter().chain(&self.second)
    }
}

impl Chain {
    fn history(&self) -> History {
        History { seed: self.seed ^ self.number << 32, chain: self.number, second: self.second }
    }

    fn mount_options(&self) -> &'static str {
        match self.kind {
            Kind::Ext4 => EXT4_OPTIONS[self.number as usize % EXT4_OPTIONS.len()],
            _ => "",
        }
    }

    /// Runs a writer until it is time, shuts the volumes down, and returns the number of the last record that was acknowledged,
    /// if any.
    fn run_and_cut(&self, volumes: &Volumes, when: &When) -> Option<u64> {
        let mut writer = Writer::start(&volumes.dirs, &self.history(), false);
        let mut acknowledgements = writer.acknowledgements();
        let last = when.wait(&mut acknowledgements);
        volumes.all().try_for_each(Volume::cut).unwrap();
        let last = acknowledgements.last().or(last);
        let status = writer.wait(PATIENCE);
        assert!(status.code().is_some(), "the writer did not end by itself: {status}");
        assert!(!status.success(), "the writer has noticed nothing");
        last
    }
}

impl Case for Chain {
    fn name(&self) -> String {
        match self.second {
            Second::None => format!("{}/chain {}", self.kind.name(), self.number),
            second => format!("two volumes/{}/chain {}, {}", self.kind.name(), self.number, second.name()),
        }
    }

    fn options(&self) -> String {
        let (name, options) = self.history().shape();
        format!("mounted with \"{}\"; {name}: {options:?}", self.mount_options())
    }

    fn run(&self, tally: &Tally) {
        let mut random = Rng::new(self.history().seed);
        let volumes = Volumes::mount(self);
        let (mut judge, mut at) = (Judge::new(self.history()), 0);
        for cut in 0..self.cuts {
            let when = When::draw(&mut random);
            within(
                || format!("power cut {cut}, {when:?}"),
                || {
                    let acknowledged = self.run_and_cut(&volumes, &when).unwrap_or(at);
                    volumes.all().try_for_each(Volume::mount_again).unwrap();
                    // What was found by the last opening is durable, too.
                    let durable = self.history().durable(acknowledged.saturating_sub(1)).max(at);
                    let expected = durable..=acknowledged + 1;
                    let last = judge.judge(&volumes.dirs, expected, &mut random);
                    tally.add("records", last - at);
                    tally.add("cuts that lost something", u64::from(last < acknowledged));
                    at = last;
                },
            );
            tally.add("power cuts", 1);
            if self.second != Second::None {
                tally.add(OF_TWO, 1);
                let has_both = volumes.dirs.packs_of_home() > 0 && volumes.dirs.packs_of_second() > 0;
                tally.add(ON_BOTH, u64::from(has_both));
            }
        }
    }
}
