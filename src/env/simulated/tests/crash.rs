//! Tests of power cuts: what survives.

use std::collections::BTreeSet;

use super::*;
use crate::env::simulated::Survival;

const BOTH: [Journal; 2] = [Journal::Ext4Like, Journal::None];

/// The different results of `look` at what survives by chance.
fn outcomes<T: Ord>(env: &SimEnv, look: impl Fn(&SimEnv) -> T) -> BTreeSet<T> {
    (0..400).map(|seed| look(&env.crash(Survival::Random(seed)))).collect()
}

fn content(path: &'static str) -> impl Fn(&SimEnv) -> Option<Vec<u8>> {
    move |env| env.read_file(p(path)).ok()
}

#[test]
fn synced_bytes_are_kept_and_others_lost() {
    for journal in BOTH {
        let env = machine(journal);
        let file = named(&env, "/f");
        file.write_at(0, b"synced").unwrap();
        file.sync().unwrap();
        file.write_at(6, b" and more").unwrap();
        assert_eq!(env.crash(Survival::Nothing).read_file(p("/f")).unwrap(), b"synced");
        assert_eq!(env.crash(Survival::Everything).read_file(p("/f")).unwrap(), b"synced and more");
        let seen = outcomes(&env, content("/f"));
        let zeros = b"synced\0\0\0\0\0\0\0\0\0".to_vec();
        let expected = [b"synced".to_vec(), b"synced and more".to_vec(), zeros];
        assert_eq!(seen, expected.map(Some).into());
        assert_eq!(env.read_file(p("/f")).unwrap(), b"synced and more");
    }
}

#[test]
fn a_crash_image_is_synced_through() {
    let env = machine(Journal::None);
    named(&env, "/f").write_at(0, b"kept by luck").unwrap();
    let restarted = env.crash(Survival::Everything).crash(Survival::Nothing);
    assert_eq!(restarted.read_file(p("/f")).unwrap(), b"kept by luck");
    assert_eq!((restarted.calls(), restarted.mutations()), (0, 0));
}

#[test]
fn an_unsynced_name_may_be_lost() {
    for journal in BOTH {
        let env = machine(journal);
        env.create(p("/f")).unwrap();
        assert_eq!(paths(&env.crash(Survival::Nothing)), [] as [&Path; 0]);
        assert_eq!(outcomes(&env, paths).len(), 2);
        env.sync_dir(p("/")).unwrap();
        assert_eq!(outcomes(&env, paths), [vec![p("/f").to_path_buf()]].into());
    }
}

#[test]
fn syncing_a_file_makes_its_name_durable_only_with_a_journal() {
    for (journal, survives) in [(Journal::Ext4Like, true), (Journal::None, false)] {
        let env = machine(journal);
        let file = env.create(p("/f")).unwrap();
        file.write_at(0, b"x").unwrap();
        file.sync().unwrap();
        assert_eq!(env.crash(Survival::Nothing).read_file(p("/f")).is_ok(), survives);
    }
}

#[test]
fn a_rename_without_a_directory_sync_is_atomic_but_not_durable() {
    for journal in BOTH {
        let env = machine(journal);
        let old = named(&env, "/CURRENT");
        old.write_at(0, b"old").unwrap();
        old.sync().unwrap();
        let new = named(&env, "/next");
        new.write_at(0, b"new").unwrap();
        new.sync().unwrap();
        env.rename(p("/next"), p("/CURRENT")).unwrap();
        assert_eq!(env.crash(Survival::Nothing).read_file(p("/CURRENT")).unwrap(), b"old");
        let seen = outcomes(&env, |env| (paths(env), env.read_file(p("/CURRENT")).unwrap()));
        let both = vec![p("/CURRENT").to_path_buf(), p("/next").to_path_buf()];
        let one = vec![p("/CURRENT").to_path_buf()];
        assert_eq!(seen, [(both, b"old".to_vec()), (one, b"new".to_vec())].into());
    }
}

#[test]
fn directory_changes_survive_in_order_only_with_a_journal() {
    for (journal, reordered) in [(Journal::Ext4Like, false), (Journal::None, true)] {
        let env = machine(journal);
        for path in ["/1", "/2", "/3"] {
            env.create(p(path)).unwrap();
        }
        let seen = outcomes(&env, paths);
        assert_eq!(seen.len(), if reordered { 8 } else { 4 });
        let hole =
            seen.iter().any(|found| found.contains(&p("/3").into()) && !found.contains(&p("/1").into()));
        assert_eq!(hole, reordered);
    }
}

#[test]
fn a_write_is_torn_at_sectors() {
    let env = machine(Journal::Ext4Like);
    let file = named(&env, "/f");
    file.write_at(0, &[1; 4096]).unwrap();
    file.sync().unwrap();
    file.write_at(100, &[2; 2000]).unwrap();
    let seen = outcomes(&env, content("/f"));
    assert!(seen.len() > 20, "{} outcomes", seen.len());
    for bytes in seen.into_iter().flatten() {
        assert_eq!(bytes.len(), 4096);
        // The write covers parts of five sectors; each is wholly old or wholly new.
        for (start, end) in [(100, 512), (512, 1024), (1024, 1536), (1536, 2048), (2048, 2100)] {
            assert!(bytes[start..end].iter().all(|byte| *byte == bytes[start]));
        }
        assert!(bytes[..100].iter().chain(&bytes[2100..]).all(|byte| *byte == 1));
    }
}

#[test]
fn unsynced_writes_survive_independently() {
    let env = machine(Journal::Ext4Like);
    let file = named(&env, "/f");
    file.set_len(1024).unwrap();
    file.sync().unwrap();
    file.write_at(0, &[1; 512]).unwrap();
    file.write_at(512, &[2; 512]).unwrap();
    let ends = |env: &SimEnv| env.read_file(p("/f")).map(|bytes| (bytes[0], bytes[1023])).unwrap();
    assert_eq!(outcomes(&env, ends), [(0, 0), (0, 2), (1, 0), (1, 2)].into());
}

#[test]
fn an_unsynced_hole_may_be_undone_until_any_sync() {
    for (journal, committed) in [(Journal::Ext4Like, true), (Journal::None, false)] {
        let env = machine(journal);
        let other = named(&env, "/other");
        let file = named(&env, "/f");
        file.write_at(0, &[7; 8192]).unwrap();
        file.sync().unwrap();
        file.punch(0, 4096).unwrap();
        let first = |env: &SimEnv| env.read_file(p("/f")).map(|bytes| (bytes[0], bytes[4096])).unwrap();
        assert_eq!(outcomes(&env, first), [(0, 7), (7, 7)].into());
        other.sync().unwrap();
        let expected = if committed { BTreeSet::from([(0, 7)]) } else { [(0, 7), (7, 7)].into() };
        assert_eq!(outcomes(&env, first), expected);
        file.sync().unwrap();
        assert_eq!(outcomes(&env, first), [(0, 7)].into());
    }
}

#[test]
fn a_committed_hole_stays_above_an_older_unsynced_write() {
    let env = machine(Journal::Ext4Like);
    let other = named(&env, "/other");
    let file = named(&env, "/f");
    file.set_len(8192).unwrap();
    file.sync().unwrap();
    file.write_at(0, &[7; 8192]).unwrap();
    file.punch(0, 4096).unwrap();
    other.sync().unwrap();
    let seen = outcomes(&env, |env| env.read_file(p("/f")).map(|bytes| (bytes[0], bytes[8191])).unwrap());
    assert_eq!(seen, [(0, 0), (0, 7)].into());
    file.sync().unwrap();
    let kept = env.crash(Survival::Nothing).read_file(p("/f")).unwrap();
    assert_eq!((kept[0], kept[4095], kept[4096], kept[8191]), (0, 0, 7, 7));
}

#[test]
fn a_length_may_survive_without_its_bytes() {
    let env = machine(Journal::None);
    let file = named(&env, "/f");
    file.set_len(1000).unwrap();
    file.write_at(0, &[5; 1000]).unwrap();
    let seen = outcomes(&env, |env| {
        let bytes = env.read_file(p("/f")).unwrap();
        (bytes.len(), bytes.iter().filter(|byte| **byte == 5).count())
    });
    assert!(seen.contains(&(1000, 0)) && seen.contains(&(0, 0)) && seen.contains(&(1000, 1000)), "{seen:?}");
}

#[test]
fn a_sync_covers_the_whole_file_again_and_again() {
    let env = machine(Journal::None);
    let file = named(&env, "/f");
    for round in 0..50_u8 {
        file.write_at(u64::from(round) * 1000, &[round; 3000]).unwrap();
        if round % 7 == 3 {
            file.set_len(u64::from(round) * 500).unwrap();
        }
        if round % 5 == 1 {
            file.punch(u64::from(round) * 300, 5000).unwrap();
        }
        if round % 3 == 0 {
            file.sync().unwrap();
            let kept = env.crash(Survival::Nothing).read_file(p("/f")).unwrap();
            assert_eq!(kept, env.read_file(p("/f")).unwrap(), "round {round}");
        }
    }
}

#[test]
fn after_the_cut_everything_fails() {
    let env = machine(Journal::Ext4Like);
    let file = named(&env, "/f");
    file.write_at(0, b"a").unwrap();
    assert_eq!(env.mutations(), 3);
    env.cut_after(1);
    file.sync().unwrap();
    assert!(file.write_at(0, b"b").is_err());
    assert!(file.read_at(0, &mut [0]).is_err());
    assert!(file.sync().is_err());
    assert!(env.list(p("/")).is_err());
    assert_eq!(env.mutations(), 5);
    let seen = outcomes(&env, content("/f"));
    assert_eq!(seen, [Some(b"a".to_vec()), Some(b"b".to_vec())].into());
}

#[test]
fn a_cut_sync_makes_nothing_durable_by_itself() {
    let env = machine(Journal::Ext4Like);
    let file = named(&env, "/f");
    file.write_at(0, b"a").unwrap();
    env.cut_after(0);
    file.sync().unwrap_err();
    assert_eq!(env.crash(Survival::Nothing).read_file(p("/f")).unwrap(), b"");
    assert_eq!(env.crash(Survival::Everything).read_file(p("/f")).unwrap(), b"a");
}

#[test]
fn a_cut_directory_may_survive() {
    let env = machine(Journal::Ext4Like);
    env.cut_after(0);
    env.create_dir(p("/a/b")).unwrap_err();
    let depth = |env: &SimEnv| ["/a", "/a/b"].map(|dir| env.canonical(p(dir)).is_ok());
    assert_eq!(outcomes(&env, depth), [[false, false], [true, false], [true, true]].into());
    let whole = machine(Journal::None);
    whole.create_dir(p("/a/b")).unwrap();
    assert_eq!(depth(&whole.crash(Survival::Nothing)), [true, true]);
}

#[test]
fn locks_do_not_outlive_the_machine() {
    let env = machine(Journal::Ext4Like);
    drop(named(&env, "/LOCK"));
    let _held = env.lock(p("/LOCK"), crate::env::LockKind::Exclusive).unwrap();
    let restarted = env.crash(Survival::Nothing);
    drop(restarted.lock(p("/LOCK"), crate::env::LockKind::Exclusive).unwrap());
}
