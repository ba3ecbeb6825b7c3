//! A striped file against an ordinary one, and what is left when the power goes between two members.

use super::*;
use crate::env::simulated::{
    DeviceModel, FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv, Survival,
};

const HOME: &str = "/home";
const OTHERS: [&str; 2] = ["/second", "/third"];
const FILE: &str = "/home/000001.pack";

fn machine(seed: u64) -> Arc<SimEnv> {
    let env = SimEnv::new(SimConfig { seed, ..SimConfig::default() });
    OTHERS.iter().for_each(|dir| env.add_device(Path::new(dir), DeviceModel::instant(), 1 << 40));
    env
}

fn stripe(chunk_bytes: u64, weights: &[u32]) -> Stripe {
    Stripe { chunk_bytes, weights: weights.to_vec(), ..Stripe::default() }
}

fn striped(env: &Arc<SimEnv>, stripe: Stripe) -> io::Result<Arc<StripedEnv>> {
    let others: Vec<&Path> = OTHERS[..stripe.weights.len() - 1].iter().map(Path::new).collect();
    StripedEnv::new(env.clone(), Path::new(HOME), &others, stripe)
}

/// A generator of numbers, xorshift64*.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

/// What two files have that should be alike; bytes behind the end are refused.
fn compare(plain: &dyn File, striped: &dyn File, numbers: &mut Numbers) {
    let length = plain.len().unwrap();
    assert_eq!(striped.len().unwrap(), length);
    for (offset, len) in [(0, length), (numbers.below(length + 1), numbers.below(1 << 20))] {
        let len = len.min(length - offset) as usize;
        let (mut expected, mut found) = (vec![0; len], vec![1; len]);
        plain.read_at(offset, &mut expected).unwrap();
        striped.read_at(offset, &mut found).unwrap();
        assert!(expected == found, "{len} bytes at {offset} of {length}");
    }
    let beyond = striped.read_at(length.saturating_sub(1), &mut [0; 2]).unwrap_err();
    assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
    assert!(striped.allocated().unwrap() <= plain.allocated().unwrap());
    // All data is found, and no hole that the ordinary file does not have is data.
    let mut found = 0;
    while let Some(range) = striped.next_data(found).unwrap() {
        let plain_range = plain.next_data(range.start).unwrap().expect("data where there is none");
        let within = plain_range.start == range.start && range.end <= plain_range.end;
        assert!(within, "{range:?} in {plain_range:?}");
        let mut skipped = vec![0; (range.start - found) as usize];
        plain.read_at(found, &mut skipped).unwrap();
        assert!(skipped.iter().all(|byte| *byte == 0), "data before {range:?}");
        found = range.end;
    }
    let mut rest = vec![0; (length - found.min(length)) as usize];
    plain.read_at(found.min(length), &mut rest).unwrap();
    assert!(rest.iter().all(|byte| *byte == 0));
}

#[test]
fn a_striped_file_is_like_an_ordinary_one() {
    for (seed, weights) in [(1, &[1, 1][..]), (2, &[5, 1]), (3, &[1, 2, 3])] {
        let sim = machine(seed);
        let env = striped(&sim, stripe(64 << 10, weights)).unwrap();
        let plain = sim.create(Path::new("/plain")).unwrap();
        let mut file = env.create(Path::new(FILE)).unwrap();
        let mut numbers = Numbers(seed);
        for step in 0..150_u32 {
            let (offset, len) = (numbers.below(2 << 20), numbers.below(1 << (10 + step % 11)));
            match numbers.below(8) {
                0 => {
                    plain.set_len(offset).unwrap();
                    file.set_len(offset).unwrap();
                }
                1 | 2 => {
                    plain.punch(offset, len).unwrap();
                    file.punch(offset, len).unwrap();
                }
                3 => {
                    file.write_back(offset..offset + len, true).unwrap();
                    file.sync().unwrap();
                    file = env.open(Path::new(FILE), Access::ReadWrite).unwrap();
                }
                _ => {
                    let bytes = vec![step as u8 | 1; len as usize];
                    plain.write_at(offset, &bytes).unwrap();
                    file.write_at(offset, &bytes).unwrap();
                }
            }
            compare(&*plain, &*file, &mut numbers);
        }
        let length = plain.len().unwrap();
        let third = length / 3;
        let ranges = [third / 2..third, 2 * third..length];
        let expected = sim.copy(&*plain, Path::new("/plain-copy"), &ranges).unwrap();
        for (to, from) in [("/home/000002.pack", &file), ("/copy", &file), ("/home/000003.pack", &plain)] {
            let copied = env.copy(&**from, Path::new(to), &ranges).unwrap();
            compare(&*expected, &*copied, &mut numbers);
        }
    }
}

#[test]
fn bytes_are_spread_by_weight_and_the_rest_is_at_home() {
    let sim = machine(1);
    let env = striped(&sim, stripe(64 << 10, &[5, 1])).unwrap();
    let file = env.create(Path::new(FILE)).unwrap();
    file.write_at(0, &vec![7; 6 << 20]).unwrap();
    env.create(Path::new("/home/000002.wal")).unwrap();
    let length = |path: &str| sim.read_file(Path::new(path)).unwrap().len();
    assert_eq!((length(FILE), length("/second/000001.pack")), (5 << 20, 1 << 20));
    assert_eq!(sim.read_file(Path::new("/second/000002.wal")).unwrap_err().kind(), io::ErrorKind::NotFound);
    sim.set_space(Path::new("/second"), 5 << 20);
    let used = sim.used_bytes(Path::new("/second"));
    assert_eq!(env.space(Path::new(HOME)).unwrap(), Space { total: 30 << 20, free: 6 * ((5 << 20) - used) });
    assert_eq!(env.list(Path::new(HOME)).unwrap(), ["000001.pack", "000002.wal"]);
}

/// The striped names on each member.
fn names(sim: &SimEnv) -> Vec<BTreeSet<String>> {
    let list = |dir: &&str| {
        let names = sim.list(Path::new(dir)).unwrap().into_iter();
        names.filter(|name| !name.starts_with("STRIPE")).collect()
    };
    [HOME, OTHERS[0], OTHERS[1]].iter().map(list).collect()
}

#[test]
fn what_is_on_some_members_alone_is_listed_not_opened_and_removed() {
    let renamed = "/home/000001.recycled";
    for survival in 0..6 {
        for cut in 0..12 {
            let sim = machine(survival);
            let env = striped(&sim, stripe(64 << 10, &[1, 1, 1])).unwrap();
            sim.cut_after(cut);
            let done = (|| {
                env.create(Path::new(FILE))?;
                env.rename(Path::new(FILE), Path::new(renamed))?;
                env.rename(Path::new(renamed), Path::new("/home/000002.pack"))?;
                env.rename(Path::new("/home/000002.pack"), Path::new(renamed))?;
                env.remove(Path::new(renamed))
            })();
            assert_eq!(done.is_err(), cut < 15);
            let sim = sim.crash(Survival::Random(survival));
            let env = striped(&sim, stripe(64 << 10, &[1, 1, 1])).unwrap();
            for name in env.list(Path::new(HOME)).unwrap() {
                let path = Path::new(HOME).join(&name);
                let there = names(&sim).iter().filter(|names| names.contains(&name)).count();
                let opened = env.open(&path, Access::Read);
                assert!(opened.is_err() || there == 3 || !name.ends_with(".pack"), "{name} is on {there}");
                env.remove(&path).unwrap();
            }
            assert!(names(&sim).iter().all(BTreeSet::is_empty), "{:?}", names(&sim));
        }
    }
}

#[test]
fn a_failure_of_one_member_is_undone_on_the_others() {
    let sim = machine(1);
    let env = striped(&sim, stripe(64 << 10, &[1, 1, 1])).unwrap();
    let fails = |operation, path_suffix: &str| {
        sim.clear_faults();
        let target = FaultTarget::Matching { operation, path_suffix: path_suffix.into(), skipped: 0 };
        sim.fault(FaultRule { target, error: FaultError::Io, sticky: true, partial: false });
    };
    fails(Operation::Create, "third/000001.pack");
    env.create(Path::new(FILE)).unwrap_err();
    assert!(names(&sim).iter().all(BTreeSet::is_empty));
    sim.clear_faults();
    let file = env.create(Path::new(FILE)).unwrap();
    fails(Operation::Rename, "third/000001.recycled");
    env.rename(Path::new(FILE), Path::new("/home/000001.recycled")).unwrap_err();
    assert!(names(&sim).iter().all(|names| names.contains("000001.pack")), "{:?}", names(&sim));
    fails(Operation::Sync, "second/000001.pack");
    file.sync().unwrap_err();
    fails(Operation::SyncDir, "third");
    env.sync_dir(Path::new(HOME)).unwrap_err();
    fails(Operation::WriteAt, "third/000001.pack");
    file.write_at(0, &vec![1; 1 << 20]).unwrap_err();
    // Threads that cannot be had are done without.
    fails(Operation::Spawn, "terrace-stripe");
    file.write_at(0, &vec![2; 1 << 20]).unwrap();
    let mut found = vec![0; 1 << 20];
    file.read_at(0, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == 2));
}

#[test]
fn directories_of_another_stripe_or_layout_are_refused() {
    let sim = machine(1);
    let env = striped(&sim, stripe(64 << 10, &[1, 1])).unwrap();
    // Without files, another layout is no harm.
    striped(&sim, stripe(64 << 10, &[2, 1])).unwrap();
    striped(&sim, stripe(64 << 10, &[1, 1])).unwrap();
    env.create(Path::new(FILE)).unwrap();
    striped(&sim, stripe(64 << 10, &[1, 1])).unwrap();
    let refused = |home: &str, other: &str, stripe: Stripe| {
        let opened = StripedEnv::new(sim.clone(), Path::new(home), &[Path::new(other)], stripe);
        assert_eq!(opened.map(drop).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    };
    refused(HOME, "/second", stripe(64 << 10, &[2, 1]));
    refused(HOME, "/second", stripe(128 << 10, &[1, 1]));
    refused(HOME, "/second", stripe(1000, &[1, 1]));
    refused(HOME, "/second", stripe(64 << 10, &[1, 0]));
    refused(HOME, "/third", stripe(64 << 10, &[1, 1]));
    refused("/second", HOME, stripe(64 << 10, &[1, 1]));
    refused(HOME, "/second/../home", stripe(64 << 10, &[1, 1]));
    sim.create(Path::new("/third/000009.pack")).unwrap();
    refused("/fourth", "/third", stripe(64 << 10, &[1, 1]));
}

#[test]
fn a_mark_is_made_whole_or_anew() {
    for cut in 0..20 {
        let sim = machine(cut);
        sim.cut_after(cut);
        let made = striped(&sim, stripe(64 << 10, &[1, 1]));
        assert_eq!(made.is_ok(), cut >= 14, "{cut}");
        let sim = sim.crash(Survival::Random(cut));
        let env = striped(&sim, stripe(64 << 10, &[1, 1])).unwrap();
        env.create(Path::new(FILE)).unwrap();
        striped(&sim, stripe(64 << 10, &[1, 1])).unwrap();
    }
}

#[test]
fn an_ordinary_file_takes_no_striped_name() {
    let sim = machine(1);
    let env = striped(&sim, stripe(64 << 10, &[1, 1])).unwrap();
    env.create(Path::new("/home/000001.wal")).unwrap();
    let into =
        |from: &str, to: &str| env.rename(Path::new(from), Path::new(to)).map_err(|error| error.kind());
    assert_eq!(into("/home/000001.wal", FILE), Err(io::ErrorKind::InvalidInput));
    env.create(Path::new(FILE)).unwrap();
    assert_eq!(into(FILE, "/second/000002.pack"), Err(io::ErrorKind::InvalidInput));
    assert_eq!(into("/home/000001.wal", "/home/000002.wal"), Ok(()));
    assert_eq!(env.create(Path::new(FILE)).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(env.remove(Path::new("/home/000004.pack")).unwrap_err().kind(), io::ErrorKind::NotFound);
}
