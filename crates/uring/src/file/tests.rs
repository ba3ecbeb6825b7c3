//! Tests of files that are written past the page cache, most of them with a scripted kernel.

use super::*;
use crate::kernel::PIECE_BYTES;
use crate::ring::Ring;
use crate::scripted::{Outcome, Script, Shared, maker};
use terrace::env::Access;
use terrace::env::posix::PosixEnv;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

struct Fixture {
    _dir: tempfile::TempDir,
    path: std::path::PathBuf,
    pool: Arc<Pool>,
    script: Shared,
}

impl Fixture {
    fn new(script: Script) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        PosixEnv::shared().create(&path).unwrap();
        let script = Arc::new(Mutex::new(script));
        Self { _dir: dir, path, pool: Arc::new(Pool::new(maker(&script)).unwrap()), script }
    }

    /// Writes of these outcomes.
    fn writing(writes: impl IntoIterator<Item = Outcome>) -> Self {
        Self::new(Script { writes: writes.into_iter().collect(), ..Script::default() })
    }

    /// As direct writes go through the script, the handle need not be direct.
    fn file(&self) -> DirectFile {
        let buffered = PosixEnv::shared().open(&self.path, Access::ReadWrite).unwrap();
        let file = Arc::new(fs::OpenOptions::new().write(true).open(&self.path).unwrap());
        DirectFile::new(buffered, Direct { file, align: PAGE }, self.pool.clone())
    }

    fn stored(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }
}

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at / 5 + at / 4096) as u8 ^ seed).collect()
}

fn read(file: &DirectFile, range: Range<usize>) -> Vec<u8> {
    let mut found = vec![0xaa; range.len()];
    file.read_at(range.start as u64, &mut found).unwrap();
    found
}

/// Appends all of it in pieces of `step`.
fn append(file: &DirectFile, bytes: &[u8], step: usize) {
    let mut at = 0;
    for piece in bytes.chunks(step) {
        file.write_at(at, piece).unwrap();
        at += piece.len() as u64;
    }
}

#[test]
fn several_pieces_are_in_flight_and_the_tail_is_not_padded() {
    let fixture = Fixture::writing([]);
    let (file, bytes) = (fixture.file(), pattern(5 * MIB + 12345, 1));
    append(&file, &bytes, MIB + 3 * PAGE);
    assert_eq!(file.len().unwrap(), bytes.len() as u64);
    file.sync().unwrap();
    assert!(fixture.stored() == bytes);
    let script = fixture.script.lock();
    assert!(script.in_flight_max >= 4, "{}", script.in_flight_max);
    assert!(script.queued.iter().all(|(offset, length)| offset % PAGE as u64 == 0 && length % PAGE == 0));
    let (direct, buffered) = fixture.pool.counts.both();
    assert_eq!(direct as usize, bytes.len() - bytes.len() % PAGE);
    assert_eq!(buffered, 0, "the tail is the stream's");
}

#[test]
fn what_is_on_its_way_is_read() {
    for is_reversed in [false, true] {
        let fixture = Fixture::new(Script { is_reversed, ..Script::default() });
        let (file, bytes) = (fixture.file(), pattern(8 * MIB + 777, 2));
        for (at, piece) in bytes.chunks(700_000).enumerate() {
            let start = at * 700_000;
            file.write_at(start as u64, piece).unwrap();
            let end = start + piece.len();
            for from in [0, end / 2, end - piece.len(), end - 1, end.saturating_sub(3 * MIB)] {
                let to = end.min(from + MIB + 5);
                assert!(read(&file, from..to) == bytes[from..to], "{from}..{to} of {end}");
            }
            let beyond = file.read_at(end as u64 - 1, &mut [0; 2]).unwrap_err();
            assert_eq!(
                beyond.kind(),
                io::ErrorKind::UnexpectedEof,
                "storage that was taken ahead is not read"
            );
        }
        drop(file);
        assert!(fixture.stored() == bytes, "a file that is closed has all that was written");
    }
}

#[test]
fn writing_back_waits_for_the_range_alone() {
    let fixture = Fixture::writing([Outcome::Whole, Outcome::Whole, Outcome::Fails(libc::EIO)]);
    let file = fixture.file();
    append(&file, &pattern(2 * MIB, 3), MIB);
    file.write_back(0..2 * MIB as u64, false).unwrap();
    file.write_back(0..MIB as u64, true).unwrap();
    let failed = file.write_back(0..MIB as u64 + 1, true).unwrap_err();
    assert_eq!(failed.raw_os_error(), Some(libc::EIO));
}

#[test]
fn a_failed_write_is_told_once_it_is_known_and_no_sync_succeeds_after_it() {
    type Call = fn(&DirectFile) -> io::Result<()>;
    let calls: [(&str, Call); 6] = [
        ("sync", |file| file.sync()),
        ("write back", |file| file.write_back(0..u64::MAX, true)),
        ("write", |file| file.write_at(2 * MIB as u64, &[0; 8 * MIB])),
        ("write elsewhere", |file| file.write_at(0, &[0; PAGE])),
        ("cut", |file| file.set_len(5)),
        ("punch", |file| file.punch(0, PAGE as u64)),
    ];
    for (name, call) in calls {
        for first in [0, 1, 3] {
            let whole = std::iter::repeat_n(Outcome::Whole, first);
            let fixture = Fixture::writing(whole.chain([Outcome::Fails(libc::EIO)]));
            let file = fixture.file();
            append(&file, &pattern(2 * MIB, 4), MIB);
            let failed = call(&file).expect_err(name);
            assert_eq!(failed.raw_os_error(), Some(libc::EIO), "{name}");
            for _ in 0..2 {
                assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(libc::EIO), "{name}");
                assert!(file.write_at(2 * MIB as u64, b"x").is_err(), "{name}");
                assert!(file.write_back(0..1, false).is_err(), "{name}");
                assert!(file.read_at(0, &mut [0]).is_err(), "{name}");
            }
        }
    }
}

#[test]
fn a_ring_that_fails_makes_its_file_fail_and_no_other() {
    let fixture = Fixture::writing([]);
    let file = fixture.file();
    append(&file, &pattern(2 * MIB, 5), MIB);
    fixture.script.lock().is_broken = true;
    assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(libc::EBADF));
    fixture.script.lock().is_broken = false;
    assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(libc::EBADF), "for ever");
    drop(file);
    // What it took ahead is still there.
    fs::write(&fixture.path, b"").unwrap();
    let (file, bytes) = (fixture.file(), pattern(3 * MIB, 6));
    append(&file, &bytes, MIB);
    file.sync().unwrap();
    assert!(fixture.stored() == bytes);
}

#[test]
fn a_short_write_is_continued() {
    // In whole blocks, within a block, not even one block, and to nothing, which is an error.
    let shorts =
        [Outcome::Short(PAGE), Outcome::Short(5 * PAGE + 100), Outcome::Whole, Outcome::Short(3 * PAGE)];
    for short in [vec![], vec![Outcome::Short(100)]] {
        let fixture = Fixture::writing(shorts.into_iter().chain(short));
        let (file, bytes) = (fixture.file(), pattern(3 * MIB + 99, 7));
        append(&file, &bytes, MIB);
        file.sync().unwrap();
        assert!(fixture.stored() == bytes);
        let queued = fixture.script.lock().queued.clone();
        assert!(queued.iter().all(|(offset, _)| offset % PAGE as u64 == 0), "{queued:?}");
    }
    let fixture = Fixture::writing([Outcome::Short(0)]);
    let file = fixture.file();
    append(&file, &pattern(MIB, 8), MIB);
    assert_eq!(file.sync().unwrap_err().kind(), io::ErrorKind::WriteZero);
}

#[test]
fn a_write_that_was_given_up_is_made_again() {
    let passing = [libc::EINTR, libc::EAGAIN, libc::ECANCELED].map(Outcome::Fails);
    let fixture = Fixture::writing(passing);
    let (file, bytes) = (fixture.file(), pattern(2 * MIB, 9));
    append(&file, &bytes, MIB);
    file.sync().unwrap();
    assert!(fixture.stored() == bytes);
    let fixture = Fixture::writing(std::iter::repeat_n(passing[1], 1000));
    let file = fixture.file();
    append(&file, &bytes, MIB);
    assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(libc::EAGAIN), "not for ever");
}

#[test]
fn where_direct_writes_are_refused_late_the_page_cache_takes_them() {
    let fixture = Fixture::writing([Outcome::Whole, Outcome::Fails(libc::EINVAL)]);
    let (file, bytes) = (fixture.file(), pattern(9 * MIB + 5, 10));
    append(&file, &bytes, MIB);
    file.sync().unwrap();
    assert!(fixture.stored() == bytes);
    assert!(fixture.script.lock().queued.len() < 9, "no more of them are tried");
    assert!(fixture.pool.counts.both().1 > 0);
}

#[test]
fn a_full_disk_is_told_before_anything_is_taken() {
    // All that was wanted ahead, then all that is needed, is too much; after that there is room for what is needed.
    let reserves = [libc::ENOSPC, libc::ENOSPC, libc::ENOSPC, 0].into();
    let fixture = Fixture::new(Script { reserves, ..Script::default() });
    let (file, bytes) = (fixture.file(), pattern(MIB, 11));
    let full = file.write_at(0, &bytes).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 0);
    file.write_at(0, &bytes).unwrap();
    file.sync().unwrap();
    assert!(fixture.stored() == bytes);
}

#[test]
fn where_no_storage_can_be_taken_ahead_files_are_written_without() {
    let fixture = Fixture::new(Script { reserves: [libc::EOPNOTSUPP].into(), ..Script::default() });
    let (file, bytes) = (fixture.file(), pattern(9 * MIB, 12));
    append(&file, &bytes, MIB);
    file.sync().unwrap();
    assert!(fixture.stored() == bytes);
}

#[test]
fn a_file_of_a_script_of_failures_is_right_or_fails() {
    let mut random = 1_u64;
    let mut next = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for round in 0..60 {
        let fails = round % 3 == 2;
        let writes = (0..40).map(|_| match next(8) {
            0 => Outcome::Short(next(PIECE_BYTES as u64) as usize + 1),
            1 => Outcome::Fails(libc::EAGAIN),
            2 if next(4) == 0 => Outcome::Fails(libc::EINVAL),
            3 if fails => Outcome::Fails(libc::EIO),
            _ => Outcome::Whole,
        });
        let fixture = Fixture::new(Script {
            writes: writes.collect(),
            is_reversed: round % 2 == 0,
            ..Script::default()
        });
        let synced = act(&fixture, &mut next);
        assert!(fails || synced, "round {round}");
    }
}

/// Random calls on a file, each checked with a model. Returns whether all went well; after a failure no sync may.
fn act(fixture: &Fixture, next: &mut impl FnMut(u64) -> u64) -> bool {
    let (mut file, mut model) = (fixture.file(), Vec::new());
    for step in 0..25 {
        let done = match next(10) {
            0 => file.sync(),
            1 => {
                let length = next(model.len() as u64 + 9000) as usize;
                file.set_len(length as u64).inspect(|()| model.resize(length, 0))
            }
            2 => {
                drop(std::mem::replace(&mut file, fixture.file()));
                if fixture.stored() != model {
                    // A failure that nobody was told of: nobody had synced.
                    return false;
                }
                Ok(())
            }
            3 => file.write_back(0..next(4 * MIB as u64), true),
            kind => {
                let end = model.len();
                let start = if kind == 4 { next(end as u64 + 5000) as usize } else { end };
                let bytes = pattern(next(if kind == 5 { 9000 } else { 2 * MIB as u64 }) as usize, step);
                file.write_at(start as u64, &bytes).inspect(|()| {
                    model.resize(model.len().max(start + bytes.len()), 0);
                    model[start..start + bytes.len()].copy_from_slice(&bytes);
                })
            }
        };
        if done.is_err() {
            assert!(file.sync().is_err() && file.sync().is_err());
            return false;
        }
        assert_eq!(file.len().unwrap(), model.len() as u64);
        let from = next(model.len() as u64 + 1) as usize;
        let to = model.len().min(from + next(MIB as u64) as usize);
        assert!(read(&file, from..to) == model[from..to], "step {step}: {from}..{to} of {}", model.len());
    }
    let synced = file.sync().is_ok();
    assert!(!synced || fixture.stored() == model);
    synced
}

#[test]
fn the_real_ring_writes_the_same() {
    let Ok(pool) = Pool::new(Box::new(|| Ok(Box::new(Ring::new()?)))) else { return };
    let mut fixture = Fixture::writing([]);
    fixture.pool = Arc::new(pool);
    let mut random = 7_u64;
    let mut next = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for _ in 0..10 {
        PosixEnv::shared().remove(&fixture.path).unwrap();
        PosixEnv::shared().create(&fixture.path).unwrap();
        assert!(act(&fixture, &mut next));
    }
}
