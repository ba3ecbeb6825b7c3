//! Tests of the log: its recovery when it is cut, torn or damaged, and what a sync promises.

use std::path::Path;
use std::sync::Arc;

use super::{
    LogBatch, PIECE_BYTES, PREALLOCATED_BYTES, Recovered, RecoveredSegment, Wal, recover, repair_scan,
    segments,
};
use crate::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv, Survival};
use crate::env::{Access, Env};
use crate::error::{ErrorKind, Result};
use crate::format::batch::{Action, Large, Op, pieces, put_op, put_op_before_value};
use crate::format::names::FileName;
use crate::store::files::device::Device;
use crate::store::files::meter::{Meter, WriteCause};
use crate::store::files::recycled::RecycledFiles;
use crate::types::{KeyspaceId, PAGE_BYTES, SegmentId, Seq};

const FLOOR: SegmentId = SegmentId(1);

fn device(env: &Arc<SimEnv>) -> Arc<Device> {
    let dir = Path::new("/db");
    env.create_dir(dir).unwrap();
    Arc::new(Device::new(env.clone(), dir.into(), Arc::new(Meter::default())))
}

fn path(segment: u64) -> String {
    format!("/db/{segment:06}.wal")
}

fn open(device: &Arc<Device>, id: SegmentId, recovered: &[RecoveredSegment]) -> Result<Wal> {
    let recycled = Arc::new(RecycledFiles::new(device.clone()));
    recycled.keep_up_to(1 << 20);
    Wal::open(device.clone(), recycled, 64 << 10, id, recovered)
}

/// Appends a batch of one put, numbered `seq`.
fn append(wal: &mut Wal, seq: u64) -> Result<()> {
    let mut ops = Vec::new();
    let action = Action::Put { key: &seq.to_le_bytes(), value: b"some value or other" };
    put_op(&mut ops, &Op { keyspace: KeyspaceId(1), action });
    wal.append(std::iter::once(LogBatch { first: Seq(seq), count: 1, ops: std::iter::once(&ops[..]) }))
}

/// The numbers of the log's operations.
fn read(device: &Device, floor: SegmentId) -> Result<(Vec<u64>, Recovered)> {
    let mut seqs = Vec::new();
    let segments = segments(device, floor, |name| device.open(name, Access::ReadWrite))?;
    let recovered = recover(&segments, floor, |first, ops| {
        let count = ops.filter(|op| op.is_ok()).count() as u64;
        seqs.extend(first.0..first.0 + count);
        Ok(())
    })?;
    Ok((seqs, recovered))
}

/// A log of three segments with four operations each.
fn three_segments(device: &Arc<Device>) -> Wal {
    let mut wal = open(device, FLOOR, &[]).unwrap();
    for seq in 1..=12 {
        append(&mut wal, seq).unwrap();
        if seq % 4 == 0 && seq < 12 {
            wal.roll().unwrap();
        }
    }
    wal
}

#[test]
fn every_segment_is_read_back_in_order_and_goes_on() {
    let env = SimEnv::new(SimConfig::default());
    let device = device(&env);
    drop(three_segments(&device));
    let (seqs, recovered) = read(&device, FLOOR).unwrap();
    assert_eq!(seqs, (1..=12).collect::<Vec<_>>());
    recovered.repair(&device).unwrap();
    let mut wal = open(&device, SegmentId(4), &recovered.segments).unwrap();
    append(&mut wal, 13).unwrap();
    assert_eq!(read(&device, FLOOR).unwrap().0.len(), 13);
    // What is in tables is let go, a segment at a time.
    assert_eq!(wal.floor(Seq(6)), SegmentId(2));
    assert_eq!(wal.floor(Seq(14)), SegmentId(4));
    let lengths = [1, 2].map(|id| env.read_file(Path::new(&path(id))).unwrap().len() as u64);
    assert_eq!(wal.release(SegmentId(3)), [(SegmentId(1), lengths[0]), (SegmentId(2), lengths[1])]);
    assert_eq!(read(&device, SegmentId(3)).unwrap().0, [9, 10, 11, 12, 13]);
}

#[test]
fn torn_end_is_cut_and_reads_the_same_afterwards() {
    let env = SimEnv::new(SimConfig::default());
    let whole = {
        let device = device(&env);
        drop(three_segments(&device));
        env.read_file(Path::new(&path(3))).unwrap().len() as u64
    };
    for cut in 0..whole {
        let image = env.crash(Survival::Everything);
        image.truncate(Path::new(&path(3)), cut).unwrap();
        let device = device(&image);
        let (before, recovered) = read(&device, FLOOR).unwrap();
        assert!(before.len() >= 8 && before.len() < 12, "cut at {cut}: {before:?}");
        recovered.repair(&device).unwrap();
        let mut wal = open(&device, SegmentId(4), &recovered.segments).unwrap();
        append(&mut wal, before.len() as u64 + 1).unwrap();
        wal.durable().sync().unwrap();
        let (after, _) = read(&device, FLOOR).unwrap();
        assert_eq!(after.len(), before.len() + 1, "cut at {cut}");
    }
}

/// Appends a batch of one put, numbered `seq`, whose frame has `bytes` bytes.
fn append_frame(wal: &mut Wal, seq: u64, bytes: u64) {
    // Frame, batch, kind, keyspace, key, and the length of the value in three bytes.
    let around = 24 + 12 + 1 + 1 + (1 + 8) + 3;
    let before = wal.current_bytes();
    let value = vec![seq as u8; (bytes - around) as usize];
    assert!(value.len() >= 1 << 14 && value.len() < 1 << 21, "a length in three bytes");
    let mut ops = Vec::new();
    let action = Action::Put { key: &seq.to_le_bytes(), value: &value };
    put_op(&mut ops, &Op { keyspace: KeyspaceId(1), action });
    wal.append(std::iter::once(LogBatch { first: Seq(seq), count: 1, ops: std::iter::once(&ops[..]) }))
        .unwrap();
    assert_eq!(wal.current_bytes() - before, bytes);
}

/// Frames that end at an edge of two pieces, reach over one, over several, and begin at one.
#[test]
fn frames_at_the_edges_of_pieces_are_read_back_and_a_tear_at_an_edge_is_cut_there() {
    const LENGTHS: [u64; 6] =
        [PIECE_BYTES / 2, PIECE_BYTES, PIECE_BYTES * 3 + 100, PIECE_BYTES, 20_000, 30_000];
    let env = SimEnv::new(SimConfig::default());
    let device = device(&env);
    let mut wal = open(&device, FLOOR, &[]).unwrap();
    let start = wal.current_bytes();
    // The second frame begins at an edge.
    append_frame(&mut wal, 1, PIECE_BYTES - start);
    let mut ends = vec![wal.current_bytes()];
    for (length, seq) in LENGTHS.into_iter().zip(2..) {
        append_frame(&mut wal, seq, length);
        ends.push(wal.current_bytes());
    }
    drop(wal);
    let (seqs, _) = read(&device, FLOOR).unwrap();
    assert_eq!(seqs, (1..=ends.len() as u64).collect::<Vec<_>>());
    let edges = (1..=ends[ends.len() - 1] / PIECE_BYTES).map(|piece| piece * PIECE_BYTES);
    let cuts = edges.chain(ends.iter().copied()).flat_map(|edge| [edge - 1, edge, edge + 1]);
    for cut in cuts.filter(|cut| *cut <= ends[ends.len() - 1]) {
        let image = env.crash(Survival::Everything);
        image.truncate(Path::new(&path(1)), cut).unwrap();
        let device = self::device(&image);
        let (seqs, recovered) = read(&device, FLOOR).unwrap();
        let whole = ends.iter().filter(|&&end| end <= cut).count();
        assert_eq!(seqs, (1..=whole as u64).collect::<Vec<_>>(), "cut at {cut}");
        recovered.repair(&device).unwrap();
        let length = image.read_file(Path::new(&path(1))).unwrap().len() as u64;
        assert_eq!(length, [&[start], &ends[..]].concat()[whole], "cut at {cut}");
        let mut wal = open(&device, SegmentId(2), &recovered.segments).unwrap();
        append(&mut wal, 100).unwrap();
        assert_eq!(read(&device, FLOOR).unwrap().0, [&seqs[..], &[100]].concat(), "cut at {cut}");
    }
}

#[test]
fn damage_in_a_piece_is_told_by_a_durable_frame_of_a_later_one() {
    let env = SimEnv::new(SimConfig::default());
    let device = device(&env);
    let mut wal = open(&device, FLOOR, &[]).unwrap();
    append(&mut wal, 1).unwrap();
    let damaged = wal.current_bytes();
    append_frame(&mut wal, 2, PIECE_BYTES * 2 + 17);
    wal.durable().sync().unwrap();
    append_frame(&mut wal, 3, PIECE_BYTES * 2);
    drop(wal);
    env.overwrite(Path::new(&path(1)), PIECE_BYTES + 5, &[0xff]).unwrap();
    let error = read(&device, FLOOR).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(damaged)), "{error}");
    let mut seqs = Vec::new();
    let lost = repair_scan(&device, FLOOR, |first, _| {
        seqs.push(first.0);
        Ok(())
    });
    assert_eq!((seqs, lost.unwrap().len()), (vec![1, 3], 1));
}

#[test]
fn segments_behind_a_lost_tail_are_given_up_unless_something_in_them_was_synced() {
    for synced in [false, true] {
        let env = SimEnv::new(SimConfig::default());
        let device = device(&env);
        let mut wal = three_segments(&device);
        if synced {
            wal.durable().sync().unwrap();
            append(&mut wal, 13).unwrap();
        }
        let length = env.read_file(Path::new(&path(2))).unwrap().len() as u64;
        env.truncate(Path::new(&path(2)), length - 1).unwrap();
        if synced {
            let error = read(&device, FLOOR).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert!(error.file().unwrap().ends_with("000002.wal"), "{error}");
        } else {
            let (seqs, recovered) = read(&device, FLOOR).unwrap();
            assert_eq!(seqs, (1..=7).collect::<Vec<_>>());
            recovered.repair(&device).unwrap();
            assert!(!env.files().iter().any(|(file, _)| file.ends_with("000003.wal")));
            assert_eq!(read(&device, FLOOR).unwrap().0, seqs);
        }
    }
}

/// Recycled files end pages with zeros, so that these say nothing of what is missing; the next segment does.
#[test]
fn repair_scan_tells_what_zeros_stand_for() {
    for (zeros, losses) in [(0, 0), (1, 1)] {
        let env = SimEnv::new(SimConfig::default());
        let device = device(&env);
        let mut wal = open(&device, FLOOR, &[]).unwrap();
        append(&mut wal, 1).unwrap();
        let first_end = wal.current_bytes();
        append(&mut wal, 2).unwrap();
        let lost = (wal.current_bytes() - first_end) as usize;
        wal.roll().unwrap();
        append(&mut wal, 3).unwrap();
        let file = device.open(FileName::Wal(FLOOR), Access::ReadWrite).unwrap();
        file.write(WriteCause::Wal, first_end, &vec![0; zeros * lost]).unwrap();
        let mut seqs = Vec::new();
        let told = repair_scan(&device, FLOOR, |first, _| {
            seqs.push(first.0);
            Ok(())
        });
        assert_eq!(told.unwrap().len(), losses);
        assert_eq!(seqs, if zeros > 0 { vec![1, 3] } else { vec![1, 2, 3] });
    }
}

#[test]
fn missing_segments_are_damage() {
    for missing in 1..=2 {
        let env = SimEnv::new(SimConfig::default());
        let device = device(&env);
        drop(three_segments(&device));
        env.remove(Path::new(&path(missing))).unwrap();
        let error = read(&device, FLOOR).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    }
}

#[test]
fn failed_append_leaves_nothing_behind() {
    let env = SimEnv::new(SimConfig::default());
    let device = device(&env);
    let mut wal = three_segments(&device);
    for seq in 13..40 {
        env.fault(FaultRule {
            target: FaultTarget::Matching {
                operation: Operation::WriteAt,
                path_suffix: ".wal".into(),
                skipped: 0,
            },
            error: FaultError::NoSpace,
            sticky: false,
            partial: true,
        });
        assert_eq!(append(&mut wal, 1000 + seq).unwrap_err().kind(), ErrorKind::DiskFull);
        env.clear_faults();
        append(&mut wal, seq).unwrap();
    }
    wal.roll().unwrap();
    append(&mut wal, 40).unwrap();
    assert_eq!(read(&device, FLOOR).unwrap().0, (1..=40).collect::<Vec<_>>());
}

/// A new log for whose syncs somebody waits.
fn has_waiters() -> (Arc<SimEnv>, Arc<Device>, Wal) {
    let env = SimEnv::new(SimConfig::default());
    let device = device(&env);
    let wal = open(&device, FLOOR, &[]).unwrap();
    wal.durable().await_syncs();
    (env, device, wal)
}

#[test]
fn what_is_written_ahead_is_no_part_of_the_log() {
    let (env, device, mut wal) = has_waiters();
    append(&mut wal, 1).unwrap();
    let (first_end, file) = (wal.current_bytes(), path(1));
    append(&mut wal, 2).unwrap();
    let end = wal.current_bytes();
    let bytes = env.read_file(Path::new(&file)).unwrap();
    assert_eq!(bytes.len() as u64, first_end + PREALLOCATED_BYTES, "once, not at each append");
    assert!(bytes[end as usize..].iter().all(|byte| *byte == 0));
    assert_eq!(read(&device, FLOOR).unwrap().0, [1, 2]);
    // What comes next is written over it, and a batch that is longer goes beyond.
    let ops = vec![0; PREALLOCATED_BYTES as usize];
    wal.append(std::iter::once(LogBatch { first: Seq(3), count: 1, ops: std::iter::once(&ops[..]) }))
        .unwrap();
    assert_eq!(
        env.read_file(Path::new(&file)).unwrap().len() as u64,
        wal.current_bytes() + PREALLOCATED_BYTES
    );
    wal.trim();
    assert_eq!(env.read_file(Path::new(&file)).unwrap().len() as u64, wal.current_bytes());
}

const RECYCLED: usize = 16 * PAGE_BYTES as usize;

/// A new log that writes over a recycled file.
fn over_a_recycled_file() -> (Arc<SimEnv>, Arc<Device>, Wal) {
    let env = SimEnv::new(SimConfig::default());
    let device = device(&env);
    let recycled = Arc::new(RecycledFiles::new(device.clone()));
    recycled.keep_up_to(1 << 20);
    let foreign = device.create(FileName::Wal(SegmentId(7))).unwrap();
    foreign.write(WriteCause::Wal, 0, &[0xff; RECYCLED]).unwrap();
    recycled.give(FileName::Wal(SegmentId(7)), RECYCLED as u64).unwrap();
    let wal = Wal::open(device.clone(), recycled, RECYCLED as u64, FLOOR, &[]).unwrap();
    (env, device, wal)
}

/// The first half of a write may hold all of a frame, for the rest of a page is zeros.
#[test]
fn failed_append_over_a_recycled_file_stays_away_whatever_a_power_cut_leaves() {
    let (env, device, mut wal) = over_a_recycled_file();
    let before = wal.current_bytes();
    append(&mut wal, 1).unwrap();
    let frame = wal.current_bytes() - before;
    let next = (2..).find(|&seq| {
        let is_last_of_page = wal.current_bytes() % PAGE_BYTES + frame > PAGE_BYTES;
        if !is_last_of_page {
            append(&mut wal, seq).unwrap();
        }
        is_last_of_page
    });
    let next = next.unwrap();
    wal.durable().sync().unwrap();
    env.fault(FaultRule {
        target: FaultTarget::Matching {
            operation: Operation::WriteAt,
            path_suffix: ".wal".into(),
            skipped: 0,
        },
        error: FaultError::NoSpace,
        sticky: false,
        partial: true,
    });
    assert_eq!(append(&mut wal, next).unwrap_err().kind(), ErrorKind::DiskFull);
    let survivals =
        [Survival::Nothing, Survival::Everything].into_iter().chain((0..16).map(Survival::Random));
    for survival in survivals {
        let device = Device::new(env.crash(survival), device.dir().into(), Arc::new(Meter::default()));
        assert_eq!(read(&device, FLOOR).unwrap().0, (1..next).collect::<Vec<_>>(), "{survival:?}");
    }
}

#[test]
fn over_a_recycled_file_the_first_write_to_a_page_is_of_all_of_it() {
    let (env, device, mut wal) = over_a_recycled_file();
    for seq in 1.. {
        let end = wal.current_bytes() as usize;
        let bytes = env.read_file(Path::new(&path(FLOOR.0))).unwrap();
        assert_eq!(read(&device, FLOOR).unwrap().0, (1..seq).collect::<Vec<_>>());
        if end > RECYCLED {
            assert_eq!(bytes.len(), end, "no zeros where nothing is written over");
            break;
        }
        let (zeros, rest) = bytes[end..].split_at(end.next_multiple_of(PAGE_BYTES as usize) - end);
        assert!(zeros.iter().all(|&byte| byte == 0) && rest.iter().all(|&byte| byte == 0xff), "{end}");
        append(&mut wal, seq).unwrap();
    }
}

#[test]
fn a_segment_that_ends_is_cut_and_reads_the_same_whatever_a_power_cut_leaves() {
    for is_refused in [false, true] {
        let (env, device, mut wal) = has_waiters();
        append(&mut wal, 1).unwrap();
        wal.durable().sync().unwrap();
        append(&mut wal, 2).unwrap();
        let end = wal.current_bytes();
        if is_refused {
            let path_suffix = "000001.wal".into();
            env.fault(FaultRule {
                target: FaultTarget::Matching { operation: Operation::SetLen, path_suffix, skipped: 0 },
                error: FaultError::Io,
                sticky: false,
                partial: false,
            });
        }
        wal.roll().unwrap();
        let length = env.read_file(Path::new(&path(1))).unwrap().len() as u64;
        assert_eq!(length == end, !is_refused, "{length} bytes, {end} of the log");
        append(&mut wal, 3).unwrap();
        assert_eq!(read(&device, FLOOR).unwrap().0, [1, 2, 3]);
        for seed in 0..64 {
            let image = self::device(&env.crash(Survival::Random(seed)));
            let (seqs, _) = read(&image, FLOOR).unwrap();
            assert!(!seqs.is_empty() && [1, 2, 3].starts_with(&seqs), "{seqs:?} after seed {seed}");
        }
        wal.durable().sync().unwrap();
        let image = self::device(&env.crash(Survival::Nothing));
        assert_eq!(read(&image, FLOOR).unwrap().0, [1, 2, 3]);
    }
}

#[test]
fn without_room_to_write_ahead_the_log_goes_on() {
    let (env, _, mut wal) = has_waiters();
    env.fault(FaultRule {
        target: FaultTarget::Matching {
            operation: Operation::WriteAt,
            path_suffix: ".wal".into(),
            skipped: 1,
        },
        error: FaultError::NoSpace,
        sticky: false,
        partial: true,
    });
    append(&mut wal, 1).unwrap();
    let zeros = env.read_file(Path::new(&path(1))).unwrap().len() as u64 - wal.current_bytes();
    assert!(0 < zeros && zeros < PAGE_BYTES, "half of the first page of zeros, not {zeros}");
    (2..=10).for_each(|seq| append(&mut wal, seq).unwrap());
    wal.durable().sync().unwrap();
    let image = self::device(&env.crash(Survival::Nothing));
    assert_eq!(read(&image, FLOOR).unwrap().0, (1..=10).collect::<Vec<_>>());
}

#[test]
fn failed_roll_leaves_the_segment_in_use() {
    for operation in [Operation::Create, Operation::WriteAt] {
        let env = SimEnv::new(SimConfig::default());
        let device = device(&env);
        let mut wal = three_segments(&device);
        env.fault(FaultRule {
            target: FaultTarget::Matching { operation, path_suffix: String::new(), skipped: 0 },
            error: FaultError::NoSpace,
            sticky: false,
            partial: false,
        });
        assert!(wal.roll().is_err());
        env.clear_faults();
        append(&mut wal, 13).unwrap();
        wal.roll().unwrap();
        append(&mut wal, 14).unwrap();
        assert_eq!(read(&device, FLOOR).unwrap().0, (1..=14).collect::<Vec<_>>(), "{operation:?}");
    }
}

#[test]
fn sync_covers_every_segment() {
    let env =
        SimEnv::new(SimConfig { journal: crate::env::simulated::Journal::None, ..SimConfig::default() });
    let device = device(&env);
    let mut wal = three_segments(&device);
    wal.durable().sync().unwrap();
    append(&mut wal, 13).unwrap();
    let image = env.crash(Survival::Nothing);
    let (seqs, _) = read(&self::device(&image), FLOOR).unwrap();
    assert_eq!(seqs, (1..=12).collect::<Vec<_>>());
}

#[test]
fn a_large_batch_is_written_from_where_it_lies() {
    let (env, device, mut wal) = over_a_recycled_file();
    append(&mut wal, 1).unwrap();
    let value: Vec<u8> = (0..1_300_000_u32).flat_map(u32::to_le_bytes).collect();
    let (mut ops, keyspace) = (Vec::new(), KeyspaceId(1));
    put_op_before_value(&mut ops, keyspace, b"beside", value.len());
    let beside = [Large { at: ops.len(), value: (&value[..]).into() }];
    put_op(&mut ops, &Op { keyspace, action: Action::Delete { key: b"gone" } });
    let mut whole = Vec::new();
    put_op(&mut whole, &Op { keyspace, action: Action::Put { key: b"among", value: &value } });
    wal.append(std::iter::once(LogBatch { first: Seq(2), count: 2, ops: pieces(&ops, &beside) })).unwrap();
    wal.append(std::iter::once(LogBatch { first: Seq(4), count: 1, ops: pieces(&whole, &[]) })).unwrap();
    assert!(wal.buffer.capacity() < value.len() / 2, "{} bytes are kept", wal.buffer.capacity());
    append(&mut wal, 5).unwrap();
    // A failure in the middle leaves nothing, and the log goes on.
    let (operation, path_suffix) = (Operation::WriteAt, ".wal".into());
    env.fault(FaultRule {
        target: FaultTarget::Matching { operation, path_suffix, skipped: 2 },
        error: FaultError::NoSpace,
        sticky: false,
        partial: true,
    });
    assert!(
        wal.append(std::iter::once(LogBatch { first: Seq(6), count: 1, ops: pieces(&whole, &[]) })).is_err()
    );
    append(&mut wal, 6).unwrap();
    assert_eq!(read(&device, FLOOR).unwrap().0, [1, 2, 3, 4, 5, 6]);
    let segments = segments(&device, FLOOR, |name| device.open(name, Access::ReadWrite)).unwrap();
    let mut found = 0;
    recover(&segments, FLOOR, |_, ops| {
        for op in ops {
            if let Action::Put { key: b"beside" | b"among", value: stored } = op?.action {
                assert!(stored == value);
                found += 1;
            }
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(found, 2);
}
