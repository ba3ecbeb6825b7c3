//! Tests of the on-disk format: golden bytes of every file kind, and agreement of `docs/format.md` with the code.
//!
//! The files in `v1/` are what stores on disk contain: a difference is a change of format. `UPDATE=1` rewrites them,
//! which is right only together with a new format version.

mod document;
mod golden;
mod samples;
mod store;

use golden::check;
use samples::{FIRST, RULE, SECOND};
use std::borrow::Cow;
use terrace::format::batch::Ops;
use terrace::format::block::Block;
use terrace::format::checksum::Place;
use terrace::format::devices::DeviceList;
use terrace::format::edit::Edit;
use terrace::format::filter::{self, Filter, PrefixProbe};
use terrace::format::identity::Identity;
use terrace::format::log::{FrameReader, Tail};
use terrace::format::manifest::ManifestStart;
use terrace::format::pack::PackDirectory;
use terrace::format::table::{BlockHandle, FOOTER_BYTES, Footer, PartitionHandle, Properties, open_block};
use terrace::format::{Malformed, current, tombstones};
use terrace::types::Seq;

#[test]
fn devices_file() -> Result<(), Malformed> {
    check("devices", &samples::devices().encode());
    assert_eq!(DeviceList::decode(&golden::read("devices"))?, samples::devices());
    Ok(())
}

#[test]
fn identity_file() -> Result<(), Malformed> {
    check("identity", &samples::identity().encode());
    assert_eq!(Identity::decode(&golden::read("identity"))?, samples::identity());
    Ok(())
}

#[test]
fn current_file() -> Result<(), Malformed> {
    check("current", &current::encode(1));
    assert_eq!(current::decode(&golden::read("current"))?, 1);
    Ok(())
}

#[test]
fn write_ahead_log() -> Result<(), Malformed> {
    check("wal", &samples::wal());
    let bytes = golden::read("wal");
    let mut reader = FrameReader::new(samples::SEGMENT.0, &bytes);
    let frame = reader.next().expect("one frame");
    let (first, mut ops) = Ops::decode(frame.payload)?;
    assert_eq!(first, Seq(500));
    assert_eq!(ops.next(), Some(Ok(samples::put_op())));
    assert_eq!(ops.next(), Some(Ok(samples::delete_op())));
    assert_eq!(ops.next(), Some(Ok(samples::delete_range_op())));
    assert_eq!(ops.next(), None);
    assert_eq!(reader.next(), None);
    assert_eq!(reader.tail(), Tail::Clean { offset: bytes.len() as u64 });
    Ok(())
}

#[test]
fn manifest() -> Result<(), Malformed> {
    check("manifest", &samples::manifest());
    let bytes = golden::read("manifest");
    let mut frames = FrameReader::new(1, &bytes);
    let start = frames.next().expect("a start");
    assert_eq!(ManifestStart::of(&start), Some(ManifestStart { store: samples::identity().store }));
    let frame = frames.next().expect("an edit");
    assert_eq!(Edit::decode(frame.payload)?, samples::edit());
    Ok(())
}

#[test]
fn pack_directory() -> Result<(), Malformed> {
    check("pack_directory", &samples::directory().encode());
    assert_eq!(PackDirectory::decode(&golden::read("pack_directory"))?, samples::directory());
    Ok(())
}

/// The block of `table` under `handle`, opened.
fn block(table: &[u8], handle: BlockHandle) -> Result<Vec<u8>, Malformed> {
    let place = Place { id: samples::TABLE.0, offset: handle.offset };
    open_block(place, &table[handle.offset as usize..handle.end() as usize]).map(Cow::into_owned)
}

#[test]
fn table() -> Result<(), Malformed> {
    check("table", &samples::table());
    let bytes = golden::read("table");
    let footer = Footer::decode(&bytes[bytes.len() - FOOTER_BYTES..])?;
    assert_eq!(footer.table, samples::TABLE);
    assert_eq!(Properties::decode(&block(&bytes, footer.properties)?)?, samples::properties());

    let filter_bytes = block(&bytes, footer.filter.expect("a filter"))?;
    let filter = Filter::decode(&filter_bytes)?;
    assert!([FIRST.0, SECOND.0].iter().all(|key| filter.may_contain(filter::hash(key))));
    assert_eq!(filter.prefix(), Some(RULE));
    assert!(filter.may_contain_prefix(&PrefixProbe::new(RULE, b"user:")));
    assert!(!filter.may_contain_prefix(&PrefixProbe::new(RULE, b"group:")));

    let tombstones_bytes = block(&bytes, footer.tombstones.expect("range tombstones"))?;
    assert_eq!(tombstones::decode(&tombstones_bytes)?, [samples::range_tombstone()]);

    let index = Block::decode(block(&bytes, footer.index.expect("an index"))?)?;
    let entry = index.seek(SECOND.0, SECOND.1);
    let data = Block::decode(block(&bytes, BlockHandle::decode(index.value(entry))?)?)?;
    let entry = data.seek(SECOND.0, SECOND.1);
    assert_eq!((data.stamp(entry), data.value(entry)), (SECOND.1, SECOND.2));
    assert_eq!(data.seek(FIRST.0, FIRST.1), 0);
    Ok(())
}

#[test]
fn partitioned_table() -> Result<(), Malformed> {
    check("partitioned_table", &samples::partitioned_table());
    let bytes = golden::read("partitioned_table");
    let footer = Footer::decode(&bytes[bytes.len() - FOOTER_BYTES..])?;
    assert_eq!(footer.filter, None);
    let partitions = Block::decode(block(&bytes, footer.index.expect("an index"))?)?;
    assert_eq!(partitions.len(), 2);
    for (at, (key, stamp, value)) in [*FIRST, *SECOND].into_iter().enumerate() {
        assert_eq!(partitions.seek(key, stamp), at);
        let partition = PartitionHandle::decode(partitions.value(at))?;
        let filter = Filter::decode(&block(&bytes, partition.filter.expect("a filter"))?)?;
        assert!(filter.may_contain(filter::hash(key)));
        let index = Block::decode(block(&bytes, partition.index)?)?;
        let data = Block::decode(block(&bytes, BlockHandle::decode(index.value(0))?)?)?;
        assert_eq!((data.len(), data.stamp(0), data.value(0)), (1, stamp, value));
    }
    Ok(())
}

/// What a compressor writes is its own affair; that it can be read is ours.
#[test]
fn compressed_block() -> Result<(), Malformed> {
    let place = Place { id: samples::TABLE.0, offset: 4096 };
    golden::write_if_asked("lz4_block", &samples::lz4_block(place));
    assert_eq!(*open_block(place, &golden::read("lz4_block"))?, *samples::text());
    Ok(())
}
