//! Tests of edits of the whole catalog: packs, counters, keyspaces and snapshots.

use super::*;
use crate::catalog::testing::{Dice, record};
use crate::types::{DeviceId, Epoch, KeyRange, SegmentId, TableId, Ttl};

fn none(_: &TableRecord) -> Lease {
    Lease::none()
}

fn counters() -> Counters {
    Counters {
        table: TableId(1000),
        pack: PackId(1000),
        epoch: Epoch(1000),
        segment: SegmentId(5),
        wal_floor: SegmentId(2),
        keyspace: KeyspaceId(10),
        seq: Seq(100_000),
        clock: 1_700_000_000,
    }
}

fn keyspace(id: u32, name: &str) -> KeyspaceChange {
    let id = KeyspaceId(id);
    let name = name.into();
    KeyspaceChange::Create(KeyspaceRecord {
        id,
        name,
        lz4: true,
        filter_bits: 10,
        prefix: None,
        separate_from: None,
        ttl: None,
    })
}

fn pack(id: u64, length: u64) -> PackRecord {
    PackRecord { id: PackId(id), device: DeviceId(0), length }
}

fn within(pack: u64, page: u64, record: TableRecord) -> TableRecord {
    let extent = Extent { pack: PackId(pack), offset: page * 4096, ..record.extent };
    TableRecord { extent, ..record }
}

fn numbered(number: u64) -> Edit {
    Edit { number: EditNo(number), counters: counters(), ..Edit::default() }
}

/// Edit 1: keyspaces 1 and 2; pack 7 with tables 1 and 2 in level 1 of keyspace 1, pack 8 with table 3 of keyspace 2.
fn started() -> Catalog {
    let tree = |keyspace, add| TreeEdit { keyspace: KeyspaceId(keyspace), add, ..TreeEdit::default() };
    let one = vec![(1, within(7, 0, record(1, "a", "c"))), (1, within(7, 1, record(2, "d", "f")))];
    let edit = Edit {
        keyspaces: vec![keyspace(1, "one"), keyspace(2, "two")],
        packs: vec![pack(7, 8192), pack(8, 4096)],
        trees: vec![tree(1, one), tree(2, vec![(0, within(8, 0, record(3, "a", "z")))])],
        ..numbered(1)
    };
    Catalog::empty().apply(&edit, &mut none).unwrap()
}

fn tree(drop: &[(u8, u64)], add: Vec<(u8, TableRecord)>) -> TreeEdit {
    let drop = drop.iter().map(|(level, id)| (*level, TableId(*id))).collect();
    TreeEdit { keyspace: KeyspaceId(1), drop, add, ..TreeEdit::default() }
}

#[test]
fn packs_come_with_their_tables_and_go_with_the_last() {
    let catalog = started();
    let state = PackState { record: pack(7, 8192), live_tables: 2, live_bytes: 8192 };
    assert_eq!(catalog.pack(PackId(7)), Some(&state));
    let edit = Edit { trees: vec![tree(&[(1, 1)], vec![])], ..numbered(2) };
    let half = catalog.apply(&edit, &mut none).unwrap();
    assert_eq!(half.pack(PackId(7)), Some(&PackState { live_tables: 1, live_bytes: 4096, ..state }));
    let edit = Edit { trees: vec![tree(&[(1, 2)], vec![])], ..numbered(3) };
    let gone = half.apply(&edit, &mut none).unwrap();
    assert_eq!(gone.packs().map(|pack| pack.record.id).collect::<Vec<_>>(), [PackId(8)]);
    assert_eq!(catalog.packs().count(), 2);
}

#[test]
fn a_move_leaves_its_pack_alone_and_a_dropped_keyspace_frees_its_packs() {
    let moved =
        Edit { trees: vec![tree(&[(1, 1)], vec![(2, within(7, 0, record(1, "a", "c")))])], ..numbered(2) };
    let catalog = started().apply(&moved, &mut none).unwrap();
    assert_eq!(catalog.pack(PackId(7)).unwrap().live_tables, 2);
    let drop = Edit { keyspaces: vec![KeyspaceChange::Drop(KeyspaceId(1))], ..numbered(3) };
    let catalog = catalog.apply(&drop, &mut none).unwrap();
    assert_eq!(catalog.pack(PackId(7)), None);
    assert_eq!(catalog.tables().map(|table| table.id.0).collect::<Vec<_>>(), [3]);
    let again = Edit { keyspaces: vec![keyspace(3, "one")], ..numbered(4) };
    catalog.apply(&again, &mut none).unwrap();
}

#[test]
fn a_keyspace_is_altered_in_how_its_tables_are_written_alone() {
    let catalog = started();
    let alter = |number, id| {
        let change = KeyspaceChange::Alter { keyspace: KeyspaceId(id), lz4: false, filter_bits: 3 };
        Edit { keyspaces: vec![change], ..numbered(number) }
    };
    let altered = catalog.apply(&alter(2, 1), &mut none).unwrap();
    let state = |catalog: &Catalog| catalog.keyspaces[&KeyspaceId(1)].clone();
    let (before, after) = (state(&catalog), state(&altered));
    assert_eq!(*after.record, KeyspaceRecord { lz4: false, filter_bits: 3, ..(*before.record).clone() });
    assert!(Arc::ptr_eq(&before.version, &after.version) && before.flushed == after.flushed);
    assert_eq!(altered.snapshot().keyspaces[0], KeyspaceChange::Create((*after.record).clone()));
    assert!(catalog.apply(&alter(2, 3), &mut none).is_err());
}

#[test]
fn values_of_a_keyspace_live_for_another_time_but_for_those_that_have_expired() {
    let record = |id, name: &str, ttl| KeyspaceRecord {
        id: KeyspaceId(id),
        name: name.into(),
        lz4: true,
        filter_bits: 10,
        prefix: None,
        separate_from: None,
        ttl,
    };
    let created = [record(3, "aging", Ttl::new(9)), record(4, "ageless", None)];
    let edit = Edit { keyspaces: created.map(KeyspaceChange::Create).into(), ..numbered(2) };
    let catalog = started().apply(&edit, &mut none).unwrap();
    let live = |catalog: &Catalog, number, id, alive_from| {
        let ttl = Ttl { alive_from, ..Ttl::new(7).unwrap() };
        let keyspaces = vec![KeyspaceChange::SetTtl { keyspace: KeyspaceId(id), ttl }];
        catalog.apply(&Edit { keyspaces, ..numbered(number) }, &mut none)
    };
    let altered = live(&catalog, 3, 3, 100).unwrap();
    let ttl = altered.keyspaces[&KeyspaceId(3)].record.ttl.unwrap();
    assert_eq!((ttl.seconds.get(), ttl.alive_from), (7, 100));
    assert!(live(&altered, 4, 3, 100).is_ok() && live(&altered, 4, 3, 99).is_err());
    assert!(live(&altered, 4, 4, 100).is_err(), "values have no dates there");
    let snapshot = altered.snapshot();
    let mut stored = Vec::new();
    snapshot.encode(&mut stored);
    let again = Catalog::empty().apply(&Edit::decode(&stored).unwrap(), &mut none).unwrap();
    assert_eq!(again.keyspaces[&KeyspaceId(3)].record, altered.keyspaces[&KeyspaceId(3)].record);
}

#[test]
fn edits_that_contradict_the_catalog_are_refused() {
    let catalog = started();
    let grow = |page, pack| Edit {
        trees: vec![tree(&[], vec![(1, within(pack, page, record(4, "x", "z")))])],
        packs: vec![self::pack(9, 4096)],
        ..numbered(2)
    };
    assert!(catalog.apply(&grow(0, 9), &mut none).is_ok());
    let counted = |change: fn(&mut Counters)| {
        let mut edit = grow(0, 9);
        change(&mut edit.counters);
        edit
    };
    let foreign = {
        let mut edit = grow(0, 9);
        edit.packs[0].device = DeviceId(3);
        edit
    };
    let other_keyspace = TreeEdit { keyspace: KeyspaceId(5), ..TreeEdit::default() };
    let flushed = |seq| TreeEdit { flushed: Some(Seq(seq)), ..tree(&[], vec![]) };
    let ahead = Edit { trees: vec![flushed(50)], ..numbered(2) };
    let ahead = catalog.apply(&ahead, &mut none).unwrap();
    assert!(ahead.apply(&Edit { trees: vec![flushed(49)], ..numbered(3) }, &mut none).is_err());
    let cases = [
        numbered(1),
        grow(1, 9),
        grow(0, 77),
        foreign,
        Edit { packs: vec![pack(7, 4096)], ..numbered(2) },
        Edit { packs: vec![pack(9, 4096), pack(9, 4096)], ..numbered(2) },
        Edit { keyspaces: vec![keyspace(3, "two")], ..numbered(2) },
        Edit { keyspaces: vec![keyspace(2, "three")], ..numbered(2) },
        Edit { keyspaces: vec![keyspace(10, "three")], ..numbered(2) },
        Edit { keyspaces: vec![keyspace(3, "")], ..numbered(2) },
        Edit { keyspaces: vec![KeyspaceChange::Drop(KeyspaceId(3))], ..numbered(2) },
        Edit { trees: vec![other_keyspace], ..numbered(2) },
        Edit { trees: vec![tree(&[], vec![]), tree(&[], vec![])], ..numbered(2) },
        Edit { trees: vec![tree(&[(1, 1), (1, 1)], vec![])], ..numbered(2) },
        counted(|counters| counters.segment = SegmentId(4)),
        counted(|counters| counters.seq = Seq(5)),
        counted(|counters| counters.table = TableId(4)),
    ];
    for case in cases {
        assert!(catalog.apply(&case, &mut none).is_err(), "{case:?}");
    }
}

#[test]
#[cfg(debug_assertions)]
fn tables_that_share_bytes_are_refused() {
    let catalog = started();
    let edit = Edit {
        packs: vec![pack(9, 8192)],
        trees: vec![tree(
            &[],
            vec![(1, within(9, 0, record(4, "x", "y"))), (2, within(9, 0, record(5, "x", "z")))],
        )],
        ..numbered(2)
    };
    assert!(catalog.apply(&edit, &mut none).unwrap_err().to_string().contains("share bytes"));
}

/// A random valid edit: a flush, a compaction of one table down, a move, or a keyspace that comes or goes.
fn random_edit(catalog: &Catalog, dice: &mut Dice) -> Edit {
    let mut edit = Edit { number: catalog.number.next(), counters: catalog.counters, ..Edit::default() };
    let id = KeyspaceId(1 + dice.below(3) as u32);
    edit.counters.keyspace = KeyspaceId(4);
    let Some(keyspace) = catalog.keyspaces.get(&id) else {
        edit.keyspaces.push(self::keyspace(id.0, &format!("name {}", id.0)));
        return edit;
    };
    if dice.below(40) == 0 {
        edit.keyspaces.push(KeyspaceChange::Drop(id));
        return edit;
    }
    let version = &keyspace.version;
    let deep: Vec<_> = version.tables().filter(|(level, _)| (1..4).contains(level)).collect();
    let mut tree = TreeEdit { keyspace: id, ..TreeEdit::default() };
    let mut new_table = |edit: &mut Edit, range: KeyRange| {
        let (table, pack, seq) = (edit.counters.table, edit.counters.pack, edit.counters.seq);
        let mut record = within(pack.0, 0, record(table.0, "", ""));
        (record.min_seq, record.max_seq, record.range) = (seq.plus(1), seq.plus(1 + dice.below(9)), range);
        (edit.counters.table, edit.counters.pack) = (table.next(), pack.next());
        edit.counters.seq = record.max_seq;
        edit.packs.push(self::pack(pack.0, 4096));
        record
    };
    if edit.number.0.is_multiple_of(3) && !deep.is_empty() {
        let (level, table) = deep[edit.number.0 as usize % deep.len()];
        let target_inputs: Vec<_> = version.levels[usize::from(level) + 1]
            .runs
            .iter()
            .flat_map(|run| run.overlapping(&table.range))
            .map(|target_input| (level + 1, target_input))
            .collect();
        tree.drop.push((level, table.id));
        tree.cursors.push((level, table.range.start.clone()));
        if target_inputs.is_empty() {
            tree.add.push((level + 1, table.record()));
        } else {
            let range = target_inputs.iter().fold(table.range.clone(), |hull, (_, p)| hull.hull(&p.range));
            tree.drop.extend(target_inputs.iter().map(|(level, target_input)| (*level, target_input.id)));
            let record = new_table(&mut edit, range);
            tree.add.push((level + 1, record));
        }
    } else if version.level(0).runs.len() < 4 {
        let from = edit.number.0 * 7 % 90;
        let range = KeyRange::new(format!("{from:02}").as_bytes(), format!("{:02}", from + 9).as_bytes());
        let mut record = new_table(&mut edit, range);
        record.epoch = edit.counters.epoch;
        edit.counters.epoch = record.epoch.next();
        tree.flushed = Some(record.max_seq);
        tree.add.push((0, record));
    } else {
        let inputs: Vec<_> = version.tables().filter(|(level, _)| *level < 2).collect();
        let hull = inputs.iter().fold(inputs[0].1.range.clone(), |hull, (_, t)| hull.hull(&t.range));
        tree.drop.extend(inputs.iter().map(|(level, table)| (*level, table.id)));
        let middle = &hull.start[..];
        let left = new_table(&mut edit, KeyRange::new(middle, middle));
        let right = new_table(&mut edit, KeyRange::half_open([middle, b"0"].concat(), hull.end.clone()));
        tree.add.extend([(1, left), (1, right)]);
    }
    edit.trees.push(tree);
    edit
}

/// Bits flip in the snapshot of a tree of many runs. Whatever still decodes is refused, or makes a tree whose levels are
/// in order.
#[test]
fn a_damaged_snapshot_of_many_runs_is_refused_or_in_order() {
    let (mut refused, mut in_order, mut deepest) = (0, 0, 0);
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let key = |n: u64| format!("{n:02}");
        let tables = (1..=12).map(|id| {
            let (from, level) = (dice.below(40), dice.below(3) as u8);
            let mut record = within(1, id, record(id, &key(from), &key(from + dice.below(12))));
            (record.epoch, record.min_seq, record.max_seq) = (Epoch(id), Seq(10 * id), Seq(10 * id + 9));
            (level, record)
        });
        let tree = TreeEdit { keyspace: KeyspaceId(1), add: tables.collect(), ..TreeEdit::default() };
        let (keyspaces, packs) = (vec![keyspace(1, "a")], vec![pack(1, 1 << 20)]);
        let edit = Edit { keyspaces, packs, trees: vec![tree], ..numbered(1) };
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        for _ in 0..400 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + dice.below(3) {
                let at = dice.below(damaged.len() as u64) as usize;
                damaged[at] ^= 1 << dice.below(8);
            }
            let Ok(edit) = Edit::decode(&damaged) else { continue };
            let Ok(catalog) = Catalog::empty().apply(&edit, &mut none) else {
                refused += 1;
                continue;
            };
            for keyspace in catalog.keyspaces.values() {
                let levels = keyspace.version.levels().skip(1);
                deepest = deepest.max(levels.map(|(_, state)| state.depth()).max().unwrap_or(0));
                let checked = check::check_version(&keyspace.version);
                let told = checked.map_or_else(|error| error.to_string(), |()| String::new());
                assert!(!told.contains("lies in a"), "seed {seed}: {told}");
            }
            in_order += 1;
        }
    }
    assert!(
        refused > 100 && in_order > 1000 && deepest > 3,
        "{refused} refused, {in_order} in order, {deepest}"
    );
}

#[test]
fn a_snapshot_rebuilds_the_catalog() {
    for seed in 0..8 {
        let mut dice = Dice(seed);
        let mut catalog = Catalog::empty();
        for _ in 0..300 {
            let edit = random_edit(&catalog, &mut dice);
            catalog = catalog.apply(&edit, &mut none).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            for keyspace in catalog.keyspaces.values() {
                check::check_version(&keyspace.version).unwrap();
            }
        }
        let snapshot = catalog.snapshot();
        let rebuilt = Catalog::empty().apply(&snapshot, &mut none).unwrap();
        assert_eq!(rebuilt.snapshot(), snapshot);
        assert!(rebuilt.packs().eq(catalog.packs()));
        let live: u64 = catalog.tables().map(|table| table.extent.length).sum();
        assert!(live > 0);
        assert_eq!(catalog.packs().map(|pack| pack.live_bytes).sum::<u64>(), live);
    }
}
