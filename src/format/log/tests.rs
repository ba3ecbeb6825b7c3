//! Tests of frames: torn and damaged ends of a log.

use super::*;
use crate::format::testing::{each_change, seeded};
use proptest::prelude::*;

const LOG: u64 = 3;

/// Frames of the given payloads, each written when all before it was durable.
fn log(payloads: &[Vec<u8>]) -> Vec<u8> {
    write(payloads, |writer| writer.offset())
}

/// Frames of the given payloads, none written when anything was durable.
fn unsynced_log(payloads: &[Vec<u8>]) -> Vec<u8> {
    write(payloads, |_| 0)
}

fn write(payloads: &[Vec<u8>], synced: impl Fn(&FrameWriter) -> u64) -> Vec<u8> {
    let mut writer = FrameWriter::new(LOG, 0, first_prev(LOG));
    let mut out = Vec::new();
    for payload in payloads {
        let (head, tail) = payload.split_at(payload.len() / 2);
        let synced = synced(&writer);
        writer.append(1, &[head, tail], synced, &mut out);
        assert_eq!(writer.offset(), out.len() as u64);
    }
    out
}

/// The payloads read, and the tail.
fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, Tail) {
    let mut reader = FrameReader::new(LOG, bytes);
    let payloads = reader.by_ref().map(|frame| frame.payload.to_vec()).collect();
    (payloads, reader.tail())
}

fn three() -> Vec<Vec<u8>> {
    vec![b"first".to_vec(), vec![], vec![9; 40]]
}

/// Offsets at which a frame of `three` begins, and the end.
const EDGES: [usize; 4] = [0, 29, 53, 117];

proptest! {
    #![proptest_config(seeded(100))]

    #[test]
    fn frames_round_trip(payloads: Vec<Vec<u8>>, zeros in 0..100usize) {
        let mut bytes = log(&payloads);
        let offset = bytes.len() as u64;
        bytes.resize(bytes.len() + zeros, 0);
        prop_assert_eq!(read(&bytes), (payloads, Tail::Clean { offset }));
    }

    #[test]
    fn noise_holds_no_frames(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(read(&bytes).0.len(), 0);
    }
}

#[test]
fn reader_hands_over_to_a_writer() {
    let whole = log(&three());
    let mut bytes = log(&three()[..1]);
    let mut reader = FrameReader::new(LOG, &bytes);
    assert_eq!(reader.next(), Some(Frame { kind: 1, payload: b"first", offset: 0, synced: 0 }));
    assert_eq!(reader.next(), None);
    let (offset, prev) = reader.state();
    let mut writer = FrameWriter::new(LOG, offset, prev);
    for payload in &three()[1..] {
        let synced = writer.offset();
        writer.append(1, &[payload], synced, &mut bytes);
    }
    assert_eq!(bytes, whole);
}

#[test]
fn cut_log_is_torn_at_the_last_whole_frame() {
    let bytes = log(&three());
    assert_eq!(bytes.len(), EDGES[3]);
    for end in 0..bytes.len() {
        let whole = EDGES.iter().filter(|&&edge| edge <= end).count() - 1;
        let offset = EDGES[whole] as u64;
        let tail = if end == EDGES[whole] { Tail::Clean { offset } } else { Tail::Torn { offset } };
        assert_eq!(read(&bytes[..end]), (three()[..whole].to_vec(), tail), "cut at {end}");
        let mut zeroed = bytes.clone();
        zeroed[end..].fill(0);
        let (payloads, tail) = read(&zeroed);
        assert!(payloads.len() >= whole && payloads[..whole] == three()[..whole], "zeroed from {end}");
        assert!(!matches!(tail, Tail::Damaged { .. }));
    }
}

#[test]
fn change_before_a_synced_frame_is_damage() {
    each_change(&log(&three()), |at, bytes| {
        let whole = EDGES.iter().filter(|&&edge| edge <= at).count() - 1;
        let offset = EDGES[whole] as u64;
        let tail = if at < EDGES[2] { Tail::Damaged { offset } } else { Tail::Torn { offset } };
        assert_eq!(read(bytes), (three()[..whole].to_vec(), tail), "change of byte {at}");
    });
}

#[test]
fn change_before_unsynced_frames_is_a_torn_tail() {
    each_change(&unsynced_log(&three()), |at, bytes| {
        let whole = EDGES.iter().filter(|&&edge| edge <= at).count() - 1;
        assert_eq!(read(bytes).1, Tail::Torn { offset: EDGES[whole] as u64 });
    });
}

#[test]
fn hole_before_a_synced_frame_is_damage() {
    let mut bytes = log(&three());
    bytes[EDGES[1]..EDGES[2]].fill(0);
    assert_eq!(read(&bytes), (three()[..1].to_vec(), Tail::Damaged { offset: EDGES[1] as u64 }));
}

#[test]
fn frames_of_another_log_do_not_verify() {
    let bytes = log(&three());
    let mut reader = FrameReader::new(LOG + 1, &bytes);
    assert_eq!(reader.next(), None);
    assert_eq!(reader.tail(), Tail::Torn { offset: 0 });
}

#[test]
fn frame_that_does_not_continue_the_chain_is_refused() {
    let mut bytes = log(&three()[..1]);
    let mut stray = FrameWriter::new(LOG, bytes.len() as u64, 12345);
    stray.append(1, &[b"stray"], 0, &mut bytes);
    assert_eq!(read(&bytes), (three()[..1].to_vec(), Tail::Torn { offset: EDGES[1] as u64 }));
}

#[test]
fn bytes_made_to_look_like_headers_cost_a_bounded_time() {
    // Each 24 bytes claim to be a frame that reaches far ahead and knew the first byte to be durable. Who cannot forge
    // the check of a header is not even listened to; a value of a user, say, which lies anywhere.
    for (forged, tail) in [(false, Tail::Torn { offset: 0 }), (true, Tail::Damaged { offset: 0 })] {
        let mut bytes = vec![1; 24];
        let count = 40_000u32;
        for index in 0..count {
            let length = (count - index) * 12;
            let place = Place { id: LOG, offset: bytes.len() as u64 };
            put_u32(&mut bytes, 1);
            put_u32(&mut bytes, 1);
            put_u32(&mut bytes, length);
            bytes.push(1);
            bytes.extend(if forged { header_check(place, 1, length, 1, 1) } else { [0; 3] });
            put_u64(&mut bytes, 1);
        }
        assert_eq!(read(&bytes).1, tail);
    }
}

/// The frames of a log up to an end, and that end.
type Stretch = (Vec<(u64, u64, Vec<u8>)>, Tail);

/// All stretches of a log, from each end on to the next frame that checks.
fn stretches<B: LogBytes<Error = Infallible>>(mut reader: FrameReader<B>) -> Vec<Stretch> {
    let mut all = Vec::new();
    loop {
        let mut frames = Vec::new();
        while let Ok(Some(frame)) = reader.next_frame() {
            frames.push((frame.offset, frame.synced, frame.payload.to_vec()));
        }
        let Ok(tail) = reader.read_tail();
        all.push((frames, tail));
        let Ok(goes_on) = reader.find_next();
        if !goes_on {
            return all;
        }
    }
}

/// A reader of `bytes`, a piece at a time.
fn in_pieces(bytes: &[u8], piece_bytes: u64) -> FrameReader<impl LogBytes<Error = Infallible>> {
    let read = |offset: u64, out: &mut [u8]| {
        out.copy_from_slice(&bytes[offset as usize..][..out.len()]);
        Ok(())
    };
    FrameReader::over(LOG, Pieces::new(bytes.len() as u64, piece_bytes, read))
}

/// Frames over the edges of pieces, ends at edges, frames longer than a piece: whatever the log, pieces of every length
/// show what the whole shows.
#[test]
fn a_log_reads_the_same_in_pieces_of_any_length() {
    let check = |bytes: &[u8], what: &str| {
        let whole = stretches(FrameReader::new(LOG, bytes));
        for piece_bytes in 1..=bytes.len() as u64 + 1 {
            assert_eq!(stretches(in_pieces(bytes, piece_bytes)), whole, "{what}, in pieces of {piece_bytes}");
        }
    };
    for bytes in [log(&three()), unsynced_log(&three())] {
        for end in 0..=bytes.len() {
            check(&bytes[..end], &format!("cut at {end}"));
        }
        for at in (0..bytes.len()).step_by(3) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            check(&damaged, &format!("changed at {at}"));
        }
        check(&[&bytes[..], &[0; 70], &[1; 30]].concat(), "with bytes behind it");
    }
}

#[test]
fn a_log_in_pieces_is_read_once_and_held_a_piece_or_a_frame_at_a_time() {
    const PIECE: u64 = 64;
    let payloads: Vec<Vec<u8>> = (0..40).map(|n| vec![n; if n == 20 { 900 } else { 17 }]).collect();
    let bytes = log(&payloads);
    let (mut reads, mut longest) = (Vec::new(), 0);
    let read = |offset: u64, out: &mut [u8]| {
        out.copy_from_slice(&bytes[offset as usize..][..out.len()]);
        reads.push(offset..offset + out.len() as u64);
        longest = longest.max(out.len());
        Ok::<(), Infallible>(())
    };
    let mut reader = FrameReader::over(LOG, Pieces::new(bytes.len() as u64, PIECE, read));
    let mut found = Vec::new();
    while let Ok(Some(frame)) = reader.next_frame() {
        found.push(frame.payload.to_vec());
    }
    assert_eq!(found, payloads);
    assert_eq!(reader.read_tail(), Ok(Tail::Clean { offset: bytes.len() as u64 }));
    drop(reader);
    assert!(reads.windows(2).all(|pair| pair[0].end == pair[1].start), "{reads:?}");
    assert_eq!(reads.last().map(|read| read.end), Some(bytes.len() as u64));
    assert!(longest < 900 + FRAME_HEADER_BYTES + PIECE as usize, "{longest} bytes at once");
    let behind = reads.iter().filter(|read| read.start > bytes.len() as u64 / 2 + 900);
    assert!(
        behind.clone().count() > 1 && behind.clone().all(|read| read.end - read.start <= PIECE),
        "{reads:?}"
    );
}

/// What is searched for durable frames may be longer than what is held.
#[test]
fn a_frame_behind_damage_is_verified_a_piece_at_a_time() {
    let mut bytes = log(&[b"lost".to_vec(), vec![7; 5000]]);
    bytes[25] ^= 1;
    let mut longest = 0;
    let read = |offset: u64, out: &mut [u8]| {
        out.copy_from_slice(&bytes[offset as usize..][..out.len()]);
        longest = longest.max(out.len());
        Ok::<(), Infallible>(())
    };
    let mut reader = FrameReader::over(LOG, Pieces::new(bytes.len() as u64, 64, read));
    assert_eq!(reader.next_frame(), Ok(None));
    assert_eq!(reader.read_tail(), Ok(Tail::Damaged { offset: 0 }));
    assert_eq!(reader.find_next(), Ok(true));
    drop(reader);
    assert!(longest <= 64, "{longest} bytes at once");
}

#[test]
fn bytes_that_cannot_be_read_are_an_error_and_no_end() {
    let bytes = log(&three());
    for failing in 0..bytes.len() as u64 {
        let read = |offset: u64, out: &mut [u8]| {
            out.copy_from_slice(&bytes[offset as usize..][..out.len()]);
            if (offset..offset + out.len() as u64).contains(&failing) { Err(failing) } else { Ok(()) }
        };
        let mut reader = FrameReader::over(LOG, Pieces::new(bytes.len() as u64, 16, read));
        let error = loop {
            match reader.next_frame() {
                Ok(Some(_)) => {}
                Ok(None) => break reader.read_tail().map(drop),
                Err(error) => break Err(error),
            }
        };
        assert_eq!(error, Err(failing));
    }
}

#[test]
fn frame_has_golden_bytes() {
    let mut writer = FrameWriter::new(LOG, 0, first_prev(LOG));
    let mut out = Vec::new();
    writer.append(2, &[b"ab", b"c"], 0, &mut out);
    writer.append(1, &[], 27, &mut out);
    #[rustfmt::skip]
    let golden = [
        217, 75, 203, 254,  173, 56, 247, 102,  3, 0, 0, 0,  2, 139, 149, 79,  0, 0, 0, 0, 0, 0, 0, 0,  b'a', b'b', b'c',
        171, 42, 185, 102,  217, 75, 203, 254,  0, 0, 0, 0,  1, 96, 103, 93,  27, 0, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(out, golden);
}

#[test]
fn a_header_before_its_payload_is_the_same_frame() {
    let mut writers = [FrameWriter::new(LOG, 0, first_prev(LOG)), FrameWriter::new(LOG, 0, first_prev(LOG))];
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    for payload in [[&b"one"[..], b"two"], [&[], &[5; 3000]], [&[6; 700], &[]]] {
        writers[0].append(3, &payload, 0, &mut whole);
        writers[1].append_header(3, &payload, 0, &mut parts);
        payload.iter().for_each(|part| parts.extend_from_slice(part));
    }
    assert_eq!(whole, parts);
    assert_eq!(writers[0].offset(), writers[1].offset());
}
