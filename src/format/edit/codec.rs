//! The stored form of an edit: payload of a frame of the manifest.
//!
//! A list of sections: tag varint, length varint, body. Numbers in a body are varints unless a size is given.
//!
//! ```text
//! TAG SECTION           BODY
//!  1  number            edit number                                           once
//!  2  keyspace created  id, length and bytes of the name, lz4 (1 byte: 0, 1), filter bits (1 byte),
//!                       time to live in seconds (0: for ever), prefix rule (3 bytes, see
//!                       [`prefix`](crate::format::prefix))
//!  3  keyspace dropped  id
//!  4  pack              id, device, length
//!  5  tree              keyspace, then sections:
//!      1  drop          level (1 byte), table
//!      2  add           level (1 byte), table, device, pack, offset, length, length and bytes of the first key,
//!                       the same of the bound behind the last key (empty: none), min seq, max seq, epoch,
//!                       entries, tombstones, range tombstones
//!      3  cursor        level (1 byte), key
//!      4  flushed       sequence number                                       at most once
//!      5  timestamps         the table added last; the seconds (4 bytes each, little endian, since 1970) in
//!                       which the oldest and the newest of its values that expire were written
//!      6  holds         the table added last; what it holds for readers of the past alone, see
//!                       [`holds`](crate::format::holds)
//!      7  value table   table, device, pack, offset, length, the two bounds as in section 2, number of values,
//!                       bytes that belong to none
//!      8  deaths        value table, number of values that have died, then ranges of bytes: for each the distance from
//!                       the end of the one before, and its length
//!      9  values        the table added last; number of its pointers, bytes of the values, lowest value table
//!    128  keys          the table added last; the seed (8 bytes) and the sum (16 bytes, both little endian) of the
//!                       hashes of its keys, see [`KeySum`]
//!  6  counters          next table, pack, epoch, segment; oldest needed segment; next keyspace; largest seq;
//!                       latest second seen                                    once
//!  7  keyspace altered  id, lz4 (1 byte), filter bits (1 byte), both as in section 2
//!  8  time altered      keyspace, seconds that its values live, second since 1970 before which they have expired
//!  9  separation        keyspace, least bytes of a value that lies apart (0: none does)
//! ```
//!
//! Sections 2, 3, 7, 8 and 9 keep their order among themselves. A reader refuses an edit with an unknown tag below 128,
//! since it does not understand the change. It skips unknown tags from 128 on. Sections do not grow: a new field gets
//! a new tag.

use std::num::NonZeroU32;

use super::{
    Counters, Deaths, Edit, KeyspaceChange, KeyspaceRecord, PackRecord, TableRecord, TreeEdit,
    ValueTableRecord,
};
use crate::format::coding::{Decoder, put_prefixed, put_varint};
use crate::format::{Malformed, holds, prefix};
use crate::types::{
    BOUND_BYTES_MAX, DeviceId, EditNo, Epoch, Extent, Holds, Key, KeyRange, KeySum, KeyspaceId, LEVELS,
    PAGE_BYTES, PackId, SegmentId, Seq, Spans, TableId, Timestamps, Ttl, UpperBound, ValueShare,
};

const NUMBER: u64 = 1;
const CREATE: u64 = 2;
const DROP: u64 = 3;
const PACK: u64 = 4;
const TREE: u64 = 5;
const COUNTERS: u64 = 6;
const ALTER: u64 = 7;
const SET_TTL: u64 = 8;
const SET_SEPARATION: u64 = 9;

const TREE_DROP: u64 = 1;
const TREE_ADD: u64 = 2;
const TREE_CURSOR: u64 = 3;
const TREE_FLUSHED: u64 = 4;
const TREE_TIMESTAMPS: u64 = 5;
const TREE_HOLDS: u64 = 6;
const TREE_VALUE_TABLE: u64 = 7;
const TREE_DEATHS: u64 = 8;
const TREE_VALUES: u64 = 9;
/// A reader that does not know it keeps hidden tables until they are merged.
const TREE_KEYS: u64 = OPTIONAL_TAGS;

/// A reader may skip a tag that it does not know from here on.
const OPTIONAL_TAGS: u64 = 128;

/// Longest name of a keyspace, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

impl Edit {
    /// Appends the stored form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_section(out, NUMBER, |out| put_varint(out, self.number.0));
        for change in &self.keyspaces {
            match change {
                KeyspaceChange::Create(record) => put_section(out, CREATE, |out| put_keyspace(out, record)),
                KeyspaceChange::Drop(id) => put_section(out, DROP, |out| put_varint(out, id.0.into())),
                KeyspaceChange::Alter { keyspace, lz4, filter_bits } => put_section(out, ALTER, |out| {
                    put_varint(out, keyspace.0.into());
                    out.extend([u8::from(*lz4), *filter_bits]);
                }),
                KeyspaceChange::SetTtl { keyspace, ttl: Ttl { seconds, alive_from } } => {
                    let numbers = [keyspace.0.into(), seconds.get().into(), (*alive_from).into()];
                    put_section(out, SET_TTL, |out| put_varints(out, &numbers));
                }
                KeyspaceChange::SetSeparation { keyspace, from } => {
                    let numbers = [keyspace.0.into(), from.map_or(0, |from| from.get().into())];
                    put_section(out, SET_SEPARATION, |out| put_varints(out, &numbers));
                }
            }
        }
        for pack in &self.packs {
            put_section(out, PACK, |out| put_varints(out, &[pack.id.0, pack.device.0.into(), pack.length]));
        }
        for tree in &self.trees {
            put_section(out, TREE, |out| put_tree(out, tree));
        }
        let Counters { table, pack, epoch, segment, wal_floor, keyspace, seq, clock } = self.counters;
        let counters = [table.0, pack.0, epoch.0, segment.0, wal_floor.0, keyspace.0.into(), seq.0, clock];
        put_section(out, COUNTERS, |out| put_varints(out, &counters));
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When a section is malformed, missing, doubled, or required and unknown; when a record contradicts itself.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut edit = Self::default();
        let (mut number, mut counters) = (None, None);
        each_section(Decoder::new(bytes), |tag, body| {
            match tag {
                NUMBER => return set_once(&mut number, EditNo(id(body)?), body),
                CREATE => edit.keyspaces.push(KeyspaceChange::Create(keyspace(body)?)),
                DROP => edit.keyspaces.push(KeyspaceChange::Drop(KeyspaceId(small_id(body)?))),
                ALTER => edit.keyspaces.push(KeyspaceChange::Alter {
                    keyspace: KeyspaceId(small_id(body)?),
                    lz4: compression(body)?,
                    filter_bits: body.u8()?,
                }),
                SET_TTL => edit
                    .keyspaces
                    .push(KeyspaceChange::SetTtl { keyspace: KeyspaceId(small_id(body)?), ttl: ttl(body)? }),
                SET_SEPARATION => edit.keyspaces.push(KeyspaceChange::SetSeparation {
                    keyspace: KeyspaceId(small_id(body)?),
                    from: NonZeroU32::new(small(body)?),
                }),
                PACK => edit.packs.push(PackRecord {
                    id: PackId(id(body)?),
                    device: DeviceId(device(body)?),
                    length: body.varint()?,
                }),
                TREE => edit.trees.push(tree(body)?),
                COUNTERS => {
                    let read = Counters {
                        table: TableId(id(body)?),
                        pack: PackId(id(body)?),
                        epoch: Epoch(id(body)?),
                        segment: SegmentId(id(body)?),
                        wal_floor: SegmentId(id(body)?),
                        keyspace: KeyspaceId(small_id(body)?),
                        seq: seq(body)?,
                        clock: body.varint()?,
                    };
                    return set_once(&mut counters, read, body);
                }
                _ => return skip(tag, body),
            }
            Ok(())
        })?;
        edit.number = number.ok_or(Malformed::new(0, "edit without a number"))?;
        edit.counters = counters.ok_or(Malformed::new(0, "edit without counters"))?;
        Ok(edit)
    }
}

/// Appends the section `tag` with the body that `put` appends.
fn put_section(out: &mut Vec<u8>, tag: u64, put: impl FnOnce(&mut Vec<u8>)) {
    put_varint(out, tag);
    let start = out.len();
    put(out);
    let end = out.len();
    put_varint(out, (end - start) as u64);
    let prefix = out.len() - end;
    out[start..].rotate_right(prefix);
}

fn put_varints(out: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|&value| put_varint(out, value));
}

fn put_keyspace(out: &mut Vec<u8>, record: &KeyspaceRecord) {
    put_varint(out, record.id.0.into());
    put_prefixed(out, record.name.as_bytes());
    out.extend([u8::from(record.lz4), record.filter_bits]);
    put_varint(out, record.ttl.map_or(0, |ttl| ttl.seconds.get().into()));
    out.extend(prefix::encode(record.prefix));
}

fn put_tree(out: &mut Vec<u8>, tree: &TreeEdit) {
    put_varint(out, tree.keyspace.0.into());
    for &(level, table) in &tree.drop {
        put_section(out, TREE_DROP, |out| {
            out.push(level);
            put_varint(out, table.0);
        });
    }
    for (level, record) in &tree.add {
        if planted!("edit-without-its-tables") {
            continue;
        }
        put_section(out, TREE_ADD, |out| {
            out.push(*level);
            put_table(out, record);
        });
        if let Some(timestamps) = record.timestamps {
            put_section(out, TREE_TIMESTAMPS, |out| {
                put_varint(out, record.id.0);
                out.extend(timestamps.oldest.to_le_bytes());
                out.extend(timestamps.newest.to_le_bytes());
            });
        }
        if record.holds != Holds::default() && !planted!("holds-not-recorded") {
            put_section(out, TREE_HOLDS, |out| {
                put_varint(out, record.id.0);
                holds::encode(&record.holds, out);
            });
        }
        let ValueShare { count, bytes, oldest } = record.values;
        if count > 0 && !planted!("pointers-of-a-table-not-recorded") {
            put_section(out, TREE_VALUES, |out| put_varints(out, &[record.id.0, count, bytes, oldest.0]));
        }
        if let Some(KeySum { seed, sum }) = record.keys {
            put_section(out, TREE_KEYS, |out| {
                put_varint(out, record.id.0);
                out.extend(seed.to_le_bytes());
                out.extend(sum.to_le_bytes());
            });
        }
    }
    for record in &tree.values {
        put_section(out, TREE_VALUE_TABLE, |out| put_value_table(out, record));
    }
    for deaths in tree.deaths.iter().filter(|_| !planted!("deaths-of-values-not-recorded")) {
        put_section(out, TREE_DEATHS, |out| put_deaths(out, deaths));
    }
    for (level, key) in &tree.cursors {
        put_section(out, TREE_CURSOR, |out| {
            out.push(*level);
            out.extend_from_slice(key);
        });
    }
    if let Some(flushed) = tree.flushed {
        put_section(out, TREE_FLUSHED, |out| put_varint(out, flushed.0));
    }
}

fn put_table(out: &mut Vec<u8>, record: &TableRecord) {
    let TableRecord {
        id,
        extent,
        range,
        min_seq,
        max_seq,
        epoch,
        entries,
        tombstones,
        range_tombstones,
        timestamps: _,
        holds: _,
        keys: _,
        values: _,
    } = record;
    put_varints(out, &[id.0, extent.device.0.into(), extent.pack.0, extent.offset, extent.length]);
    put_prefixed(out, &range.start);
    put_prefixed(out, range.end.as_bytes());
    put_varints(out, &[min_seq.0, max_seq.0, epoch.0, *entries, *tombstones, *range_tombstones]);
}

fn put_value_table(out: &mut Vec<u8>, record: &ValueTableRecord) {
    let ValueTableRecord { id, extent, range, count, gap_bytes } = record;
    put_varints(out, &[id.0, extent.device.0.into(), extent.pack.0, extent.offset, extent.length]);
    put_prefixed(out, &range.start);
    put_prefixed(out, range.end.as_bytes());
    put_varints(out, &[*count, *gap_bytes]);
}

fn put_deaths(out: &mut Vec<u8>, Deaths { table, count, spans }: &Deaths) {
    put_varints(out, &[table.0, *count]);
    let mut end = 0;
    for range in spans.iter() {
        put_varints(out, &[(range.start - end).into(), (range.end - range.start).into()]);
        end = range.end;
    }
}

/// Hands the tag and body of each section left in `decoder` to `read`, and checks that it reads the whole body.
fn each_section<'a>(
    mut decoder: Decoder<'a>,
    mut read: impl FnMut(u64, &mut Decoder<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    while !decoder.is_empty() {
        let tag = decoder.varint()?;
        let mut body = decoder.section()?;
        read(tag, &mut body)?;
        body.finish()?;
    }
    Ok(())
}

/// Skips the body of a section whose tag is unknown, if that is allowed.
fn skip(tag: u64, body: &mut Decoder<'_>) -> Result<(), Malformed> {
    if tag < OPTIONAL_TAGS {
        return Err(body.malformed("required section of an edit that this version does not know"));
    }
    body.bytes(body.remaining()).map(|_| ())
}

fn set_once<T>(slot: &mut Option<T>, value: T, body: &Decoder<'_>) -> Result<(), Malformed> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(body.malformed("section occurs twice")),
    }
}

/// A number from a counter that is not exhausted.
fn id(body: &mut Decoder<'_>) -> Result<u64, Malformed> {
    let start = body.clone();
    let id = body.varint()?;
    if id == u64::MAX { Err(start.malformed("id out of range")) } else { Ok(id) }
}

/// As [`id`], for 32-bit ids.
fn small_id(body: &mut Decoder<'_>) -> Result<u32, Malformed> {
    let start = body.clone();
    let id = u32::try_from(body.varint()?).ok().filter(|&id| id < u32::MAX);
    id.ok_or_else(|| start.malformed("id out of range"))
}

fn device(body: &mut Decoder<'_>) -> Result<u16, Malformed> {
    let start = body.clone();
    u16::try_from(body.varint()?).map_err(|_| start.malformed("id out of range"))
}

fn seq(body: &mut Decoder<'_>) -> Result<Seq, Malformed> {
    let start = body.clone();
    let seq = Seq(body.varint()?);
    if seq <= Seq::MAX { Ok(seq) } else { Err(start.malformed("sequence number out of range")) }
}

fn level(body: &mut Decoder<'_>) -> Result<u8, Malformed> {
    let start = body.clone();
    let level = body.u8()?;
    if usize::from(level) < LEVELS { Ok(level) } else { Err(start.malformed("level out of range")) }
}

fn checked_key(body: &Decoder<'_>, key: &[u8]) -> Result<Key, Malformed> {
    if key.len() <= BOUND_BYTES_MAX { Ok(key.into()) } else { Err(body.malformed("key too long")) }
}

/// Whether tables are compressed with LZ4.
fn compression(body: &mut Decoder<'_>) -> Result<bool, Malformed> {
    let start = body.clone();
    match body.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(start.malformed("unknown compression of a keyspace")),
    }
}

fn keyspace(body: &mut Decoder<'_>) -> Result<KeyspaceRecord, Malformed> {
    let start = body.clone();
    let id = KeyspaceId(small_id(body)?);
    let name = body.prefixed()?;
    let name = std::str::from_utf8(name).ok().filter(|name| (1..=NAME_BYTES_MAX).contains(&name.len()));
    let name = name.ok_or_else(|| start.malformed("impossible name of a keyspace"))?.to_owned();
    let lz4 = compression(body)?;
    let filter_bits = body.u8()?;
    let ttl = Ttl::new(seconds(body)?);
    let prefix = prefix::read(body)?;
    Ok(KeyspaceRecord { id, name, lz4, filter_bits, prefix, separate_from: None, ttl })
}

/// How long values live, or a point in time.
fn seconds(body: &mut Decoder<'_>) -> Result<u32, Malformed> {
    let start = body.clone();
    u32::try_from(body.varint()?).map_err(|_| start.malformed("more seconds than there are"))
}

fn ttl(body: &mut Decoder<'_>) -> Result<Ttl, Malformed> {
    let start = body.clone();
    let ttl = Ttl::new(seconds(body)?).ok_or_else(|| start.malformed("no time to live"))?;
    Ok(Ttl { alive_from: seconds(body)?, ..ttl })
}

fn tree(body: &mut Decoder<'_>) -> Result<TreeEdit, Malformed> {
    let mut tree = TreeEdit { keyspace: KeyspaceId(small_id(body)?), ..TreeEdit::default() };
    let offset = body.offset();
    let sections = Decoder::within(body.bytes(body.remaining())?, offset);
    each_section(sections, |tag, body| {
        match tag {
            TREE_DROP => tree.drop.push((level(body)?, TableId(id(body)?))),
            TREE_ADD => tree.add.push((level(body)?, table(body)?)),
            TREE_CURSOR => {
                let level = level(body)?;
                let key = body.bytes(body.remaining())?;
                tree.cursors.push((level, checked_key(body, key)?));
            }
            TREE_FLUSHED => return set_once(&mut tree.flushed, seq(body)?, body),
            TREE_TIMESTAMPS => timestamps(&mut tree, body)?,
            TREE_HOLDS => holds_of(&mut tree, body)?,
            TREE_KEYS => keys_of(&mut tree, body)?,
            TREE_VALUE_TABLE => tree.values.push(value_table(body)?),
            TREE_DEATHS => tree.deaths.push(deaths(body)?),
            TREE_VALUES => values_of(&mut tree, body)?,
            _ => return skip(tag, body),
        }
        Ok(())
    })?;
    Ok(tree)
}

/// Reads the timestamps of the table that `tree` has added last.
fn timestamps(tree: &mut TreeEdit, body: &mut Decoder<'_>) -> Result<(), Malformed> {
    let start = body.clone();
    let table = TableId(id(body)?);
    let timestamps = Timestamps { oldest: body.u32()?, newest: body.u32()? };
    let added = tree.add.last_mut().filter(|(_, record)| record.id == table && record.timestamps.is_none());
    match added {
        Some((_, record)) if timestamps.oldest <= timestamps.newest => record.timestamps = Some(timestamps),
        Some(_) => return Err(start.malformed("dates of a table are inverted")),
        None => return Err(start.malformed("dates of a table that is not the last one added")),
    }
    Ok(())
}

/// Reads the holds of the table that `tree` has added last.
fn holds_of(tree: &mut TreeEdit, body: &mut Decoder<'_>) -> Result<(), Malformed> {
    let start = body.clone();
    let table = TableId(id(body)?);
    let holds = holds::read(body)?;
    let is_added = |record: &TableRecord| record.id == table && record.holds == Holds::default();
    let Some((_, record)) = tree.add.last_mut().filter(|(_, record)| is_added(record)) else {
        return Err(start.malformed("what a table holds back that is not the last one added"));
    };
    let held = holds.held();
    if held.records > record.entries.saturating_add(record.range_tombstones)
        || held.bytes > record.extent.length
    {
        return Err(start.malformed("a table holds back more than it has"));
    }
    record.holds = holds;
    Ok(())
}

/// Reads which keys the table has that `tree` has added last.
fn keys_of(tree: &mut TreeEdit, body: &mut Decoder<'_>) -> Result<(), Malformed> {
    let start = body.clone();
    let table = TableId(id(body)?);
    let keys = KeySum { seed: body.u64()?, sum: u128::from(body.u64()?) | u128::from(body.u64()?) << 64 };
    let added = tree.add.last_mut().filter(|(_, record)| record.id == table && record.keys.is_none());
    match added {
        Some((_, record)) if record.range_tombstones == 0 => record.keys = Some(keys),
        Some(_) => return Err(start.malformed("keys of a table with range tombstones")),
        None => return Err(start.malformed("keys of a table that is not the last one added")),
    }
    Ok(())
}

/// Reads what the table has of separated values that `tree` has added last.
fn values_of(tree: &mut TreeEdit, body: &mut Decoder<'_>) -> Result<(), Malformed> {
    let start = body.clone();
    let table = TableId(id(body)?);
    let values = ValueShare { count: body.varint()?, bytes: body.varint()?, oldest: TableId(id(body)?) };
    let is_added = |record: &TableRecord| record.id == table && record.values.count == 0;
    match tree.add.last_mut().filter(|(_, record)| is_added(record)) {
        Some((_, record)) if (1..=record.entries).contains(&values.count) => record.values = values,
        Some(_) => return Err(start.malformed("a table has more pointers than entries")),
        None => return Err(start.malformed("pointers of a table that is not the last one added")),
    }
    Ok(())
}

fn value_table(body: &mut Decoder<'_>) -> Result<ValueTableRecord, Malformed> {
    let start = body.clone();
    let id = TableId(id(body)?);
    let record = ValueTableRecord {
        id,
        extent: extent(body)?,
        range: range(body)?,
        count: body.varint()?,
        gap_bytes: body.varint()?,
    };
    if record.count == 0
        || record.gap_bytes > record.extent.length
        || u32::try_from(record.extent.length).is_err()
    {
        return Err(start.malformed("a value table without values, or too long a one"));
    }
    Ok(record)
}

fn deaths(body: &mut Decoder<'_>) -> Result<Deaths, Malformed> {
    let start = body.clone();
    let (table, count, mut spans, mut end) = (TableId(id(body)?), body.varint()?, Spans::default(), 0u32);
    while !body.is_empty() {
        let from = end.checked_add(small(body)?);
        let range = from.and_then(|from| Some(from..from.checked_add(small(body).ok()?)?));
        let range = range.filter(|range| spans.push(range.clone()));
        end = range.ok_or_else(|| start.malformed("bytes of dead values out of range"))?.end;
    }
    Ok(Deaths { table, count, spans })
}

fn small(body: &mut Decoder<'_>) -> Result<u32, Malformed> {
    let start = body.clone();
    u32::try_from(body.varint()?).map_err(|_| start.malformed("number out of range"))
}

fn table(body: &mut Decoder<'_>) -> Result<TableRecord, Malformed> {
    let start = body.clone();
    let id_of_table = TableId(id(body)?);
    let extent = extent(body)?;
    let range = range(body)?;
    let record = TableRecord {
        id: id_of_table,
        extent,
        range,
        min_seq: seq(body)?,
        max_seq: seq(body)?,
        epoch: Epoch(id(body)?),
        entries: body.varint()?,
        tombstones: body.varint()?,
        range_tombstones: body.varint()?,
        timestamps: None,
        holds: Holds::default(),
        keys: None,
        values: ValueShare::default(),
    };
    if record.min_seq > record.max_seq || record.tombstones > record.entries {
        return Err(start.malformed("record of a table contradicts itself"));
    }
    Ok(record)
}

fn extent(body: &mut Decoder<'_>) -> Result<Extent, Malformed> {
    let start = body.clone();
    let device = DeviceId(device(body)?);
    let pack = PackId(id(body)?);
    let extent = Extent { device, pack, offset: body.varint()?, length: body.varint()? };
    if !extent.offset.is_multiple_of(PAGE_BYTES) || extent.offset.checked_add(extent.length).is_none() {
        return Err(start.malformed("impossible extent of a table"));
    }
    Ok(extent)
}

fn range(body: &mut Decoder<'_>) -> Result<KeyRange, Malformed> {
    let start = body.clone();
    let first = body.prefixed()?;
    let end = body.prefixed()?;
    let range =
        KeyRange { start: checked_key(body, first)?, end: UpperBound::from_bytes(&checked_key(body, end)?) };
    if range.is_inverted() {
        return Err(start.malformed("keys of a table are inverted"));
    }
    Ok(range)
}
