//! Tests of advice to read ahead: what it takes of which device, and of whose time.

use std::time::Duration;

use super::*;
use crate::env::simulated::{DeviceModel, FaultError, FaultRule, FaultTarget, Operation, PageReads};

const MILLI: Duration = Duration::from_millis(1);
const PAGE: u64 = 4096;

/// A page takes 2 ms: one before the transfer, and one for it.
fn disk() -> DeviceModel {
    DeviceModel { read_latency: MILLI, read_bandwidth: PAGE * 1000, ..DeviceModel::instant() }
}

/// A machine with a disk, another one below `/other`, and a file of eight pages on each.
fn machine_of_two() -> (Arc<SimEnv>, [Arc<dyn File>; 2]) {
    let env = SimEnv::new(SimConfig { device: disk(), ..SimConfig::default() });
    env.add_device(p("/other"), disk(), 1 << 30);
    env.create_dir(p("/other")).unwrap();
    let files = ["/f", "/other/f"].map(|path| {
        let file = env.create(p(path)).unwrap();
        file.write_at(0, &[7; 8 * PAGE as usize]).unwrap();
        file
    });
    (env, files)
}

/// How long a read of these pages takes.
fn read(env: &SimEnv, file: &dyn File, pages: Range<u64>) -> Duration {
    let before = env.now();
    let mut found = vec![0; ((pages.end - pages.start) * PAGE) as usize];
    file.read_at(pages.start * PAGE, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == 7));
    env.now() - before
}

fn advise(env: &SimEnv, file: &dyn File, pages: Range<u64>) {
    let before = env.now();
    file.read_ahead(pages.start * PAGE..pages.end * PAGE);
    assert_eq!(env.now(), before, "nobody waits for advice");
}

#[test]
fn two_devices_read_ahead_at_the_same_time() {
    let (env, [one, other]) = machine_of_two();
    assert_eq!([read(&env, &*one, 0..3), read(&env, &*other, 0..3)], [4 * MILLI; 2]);
    for file in [&one, &other] {
        advise(&env, &**file, 0..3);
    }
    assert_eq!(read(&env, &*one, 0..3), 4 * MILLI);
    assert_eq!(read(&env, &*other, 0..3), Duration::ZERO);
}

#[test]
fn who_works_meanwhile_waits_for_the_rest_of_the_transfer_alone() {
    let (env, [file, _]) = machine_of_two();
    advise(&env, &*file, 0..3);
    env.sleep(3 * MILLI);
    assert_eq!(read(&env, &*file, 0..3), MILLI);
    advise(&env, &*file, 0..3);
    env.sleep(10 * MILLI);
    assert_eq!(read(&env, &*file, 0..3), Duration::ZERO);
}

#[test]
fn what_was_read_ahead_costs_one_transfer_and_what_was_not_a_transfer_of_its_own() {
    let (env, [file, _]) = machine_of_two();
    advise(&env, &*file, 0..2);
    advise(&env, &*file, 0..2);
    advise(&env, &*file, 1..3);
    // 3 ms for the first two; the third one is queued behind them.
    assert_eq!(read(&env, &*file, 0..2), 3 * MILLI);
    assert_eq!(read(&env, &*file, 2..4), 4 * MILLI, "2 ms for the third page, and as much for the fourth");
    assert_eq!(read(&env, &*file, 0..2), 3 * MILLI, "nothing keeps them");
}

#[test]
fn what_is_never_read_costs_the_device_its_transfer() {
    let (env, [file, other]) = machine_of_two();
    advise(&env, &*file, 0..3);
    assert_eq!(read(&env, &*other, 0..1), 2 * MILLI);
    assert_eq!(read(&env, &*file, 4..5), 4 * MILLI, "2 ms are left of the advice");
    file.read_ahead(7 * PAGE..u64::MAX);
    assert_eq!(read(&env, &*file, 7..8), 2 * MILLI, "no more than the file has");
    file.read_ahead(100 * PAGE..200 * PAGE);
    assert_eq!(read(&env, &*file, 7..8), 2 * MILLI);
    advise(&env, &*file, 0..2);
    env.remove(p("/f")).unwrap();
    assert_eq!(file.links().unwrap(), 0);
}

#[test]
fn what_is_written_over_is_read_anew() {
    let (env, [file, _]) = machine_of_two();
    advise(&env, &*file, 0..2);
    env.sleep(10 * MILLI);
    file.write_at(0, &[7; PAGE as usize]).unwrap();
    assert_eq!(read(&env, &*file, 1..2), Duration::ZERO);
    assert_eq!(read(&env, &*file, 0..1), 2 * MILLI);
}

#[test]
fn a_long_range_is_there_piece_by_piece() {
    let model = DeviceModel { read_bandwidth: 512 << 10, ..DeviceModel::instant() };
    let env = SimEnv::new(SimConfig { device: model, ..SimConfig::default() });
    let file = env.create(p("/f")).unwrap();
    file.write_at(0, &[7; 1 << 20]).unwrap();
    advise(&env, &*file, 0..256);
    assert_eq!(read(&env, &*file, 0..1), Duration::from_secs(1), "a request of half of it");
    assert_eq!(read(&env, &*file, 255..256), Duration::from_secs(1));
}

#[test]
fn advice_brings_into_the_page_cache_what_is_not_there() {
    let (env, [file, _]) = machine_of_two();
    env.set_page_cache(4 * PAGE);
    assert_eq!(read(&env, &*file, 0..1), 2 * MILLI);
    advise(&env, &*file, 0..3);
    assert_eq!(read(&env, &*file, 0..3), 3 * MILLI, "the first page is there");
    assert_eq!(read(&env, &*file, 0..3), Duration::ZERO);
    assert_eq!(env.page_reads(), PageReads { hits: 6, misses: 1 });
    advise(&env, &*file, 0..3);
    assert_eq!(read(&env, &*file, 4..5), 2 * MILLI, "advice of what is there takes nothing");
    // Others take the place of what is not read in time.
    advise(&env, &*file, 5..7);
    env.sleep(10 * MILLI);
    assert_eq!(read(&env, &*file, 0..4), 4 * MILLI);
    assert_eq!(read(&env, &*file, 5..7), 3 * MILLI);
}

#[test]
fn advice_that_fails_is_as_if_it_had_not_been_given() {
    let (env, [file, _]) = machine_of_two();
    let target =
        FaultTarget::Matching { operation: Operation::ReadAhead, path_suffix: "f".to_owned(), skipped: 0 };
    env.fault(FaultRule { target, error: FaultError::Io, sticky: true, partial: true });
    advise(&env, &*file, 0..2);
    assert_eq!(env.faults_fired(), 1);
    assert_eq!(read(&env, &*file, 0..2), 3 * MILLI);
    env.clear_faults();
    env.cut_after(0);
    file.write_at(0, &[1]).unwrap_err();
    advise(&env, &*file, 0..2);
    let restarted = env.crash(crate::env::simulated::Survival::Nothing);
    assert_eq!(restarted.now(), env.now());
}
