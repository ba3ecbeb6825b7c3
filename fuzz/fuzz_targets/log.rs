//! A log of frames, then arbitrary bytes over some of it: what is read is a prefix of what was written. Reading
//! on behind damage gets on, and comes to an end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terrace::format::log::{FrameReader, FrameWriter, Tail, first_prev};

const LOG: u64 = 3;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = FrameReader::new(LOG, bytes);
    let mut end = 0;
    for frame in reader.by_ref() {
        assert_eq!(frame.offset, end);
        end = frame.offset + 24 + frame.payload.len() as u64;
    }
    assert_eq!(reader.state().0, end);
    let (Tail::Clean { offset } | Tail::Torn { offset } | Tail::Damaged { offset }) = reader.tail();
    assert_eq!(offset, end);
    read_behind_damage(reader, bytes.len());

    let Some((&at, bytes)) = bytes.split_first() else { return };
    let payloads: Vec<&[u8]> = bytes.chunks(20).collect();
    let mut written = Vec::new();
    let mut writer = FrameWriter::new(LOG, 0, first_prev(LOG));
    for payload in &payloads {
        let synced = writer.offset();
        writer.append(1, &[payload], synced, &mut written);
    }
    assert!(FrameReader::new(LOG, &written).map(|frame| frame.payload).eq(payloads.iter().copied()));
    overwritten(&written, usize::from(at), bytes, &payloads);
});

/// Puts `bytes` over `written` from `at` on, each of them changed: as they are, those of the corpus are frames of this very log.
fn overwritten(written: &[u8], at: usize, bytes: &[u8], payloads: &[&[u8]]) {
    let mut damaged = written.to_vec();
    damaged.iter_mut().skip(at).zip(bytes).for_each(|(to, from)| *to = !*from);
    let mut reader = FrameReader::new(LOG, &damaged);
    let read: Vec<_> = reader.by_ref().map(|frame| frame.payload).collect();
    assert!(payloads.starts_with(&read));
    if read.len() == payloads.len() {
        assert_eq!(reader.tail(), Tail::Clean { offset: written.len() as u64 });
    }
    read_behind_damage(reader, damaged.len());
}

/// Reads on to the end of a log of `length` bytes.
fn read_behind_damage(mut reader: FrameReader<&[u8]>, length: usize) {
    let mut end = reader.state().0;
    while reader.skip_damage() {
        let before = end;
        for frame in reader.by_ref() {
            assert!(frame.offset >= end);
            end = frame.offset + 24 + frame.payload.len() as u64;
        }
        assert!(before < end && end <= length as u64);
    }
}
