//! Tests of the ring, on real files and descriptors.
#![expect(clippy::disallowed_methods, reason = "tests of what the rest of the store uses instead")]

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use super::*;

/// A ring, or none with a word about it where the kernel has none.
fn ring() -> Option<Ring> {
    Ring::new().inspect_err(|refused| println!("not tested, for there is no io_uring: {refused}")).ok()
}

fn fill(ring: &mut Ring, at: usize) {
    ring.buffer_mut(at).iter_mut().zip(0_u32..).for_each(|(byte, n)| *byte = (n / 7) as u8 ^ at as u8);
}

fn take_all(ring: &mut Ring) -> Vec<Completion> {
    let mut taken: Vec<_> = std::iter::from_fn(|| ring.take(true).unwrap()).collect();
    taken.sort_by_key(|done| done.at);
    taken
}

fn code(done: &Completion) -> Option<i32> {
    done.result.as_ref().err().and_then(io::Error::raw_os_error)
}

#[test]
fn all_buffers_are_written_at_a_time() {
    for is_registered in [true, false] {
        let Some(mut ring) = ring() else { return };
        ring.is_registered &= is_registered;
        let file = Arc::new(tempfile::tempfile().unwrap());
        for at in 0..PIECES {
            fill(&mut ring, at);
            ring.write(at, 0..PIECE_BYTES, &file, (at * PIECE_BYTES) as u64).unwrap();
        }
        ring.submit().unwrap();
        let taken = take_all(&mut ring);
        assert_eq!(taken.len(), PIECES);
        assert!(taken.iter().all(|done| matches!(done.result, Ok(PIECE_BYTES))));
        let mut found = vec![0; PIECE_BYTES];
        for at in 0..PIECES {
            file.read_exact_at(&mut found, (at * PIECE_BYTES) as u64).unwrap();
            assert!(found == ring.buffer(at), "buffer {at}");
        }
        assert_eq!(Arc::strong_count(&file), 1, "a file is let go of once it is written");
    }
}

#[test]
fn a_part_of_a_buffer_is_written() {
    let Some(mut ring) = ring() else { return };
    let file = Arc::new(tempfile::tempfile().unwrap());
    fill(&mut ring, 3);
    ring.write(3, 4096..12288, &file, 0).unwrap();
    assert!(matches!(take_all(&mut ring)[..], [Completion { at: 3, result: Ok(8192) }]));
    let mut found = [0; 8192];
    file.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(found, ring.buffer(3)[4096..12288]);
}

#[test]
fn a_descriptor_that_cannot_be_written_says_so_in_the_completion() {
    let Some(mut ring) = ring() else { return };
    let full = Arc::new(File::options().write(true).open("/dev/full").unwrap());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    std::fs::write(&path, b"").unwrap();
    let read_only = Arc::new(File::open(&path).unwrap());
    ring.write(0, 0..4096, &full, 0).unwrap();
    ring.write(1, 0..4096, &read_only, 0).unwrap();
    let taken = take_all(&mut ring);
    assert_eq!(taken.iter().map(code).collect::<Vec<_>>(), [Some(libc::ENOSPC), Some(libc::EBADF)]);
    assert!(ring.take(true).unwrap().is_none(), "nothing is in flight, so nobody waits");
}

/// A pipe takes 64 KiB and then makes the kernel wait, so the rest of the buffer is in flight for as long as the test likes.
fn pipe() -> (File, Arc<File>) {
    let (reader, writer) = std::io::pipe().unwrap();
    (File::from(OwnedFd::from(reader)), Arc::new(File::from(OwnedFd::from(writer))))
}

#[test]
#[should_panic(expected = "the kernel has buffer 0")]
fn a_buffer_in_flight_cannot_be_changed() {
    let Some(mut ring) = ring() else { panic!("the kernel has buffer 0, or would have: no io_uring") };
    let (_reader, writer) = pipe();
    ring.write(0, 0..PIECE_BYTES, &writer, 0).unwrap();
    ring.submit().unwrap();
    ring.buffer_mut(0);
}

#[test]
fn a_drop_in_flight_waits_for_the_kernel() {
    let Some(mut ring) = ring() else { return };
    let (mut reader, writer) = pipe();
    // Full, so that not a byte of the buffer is taken before somebody reads.
    (&*writer).write_all(&[1; 64 << 10]).unwrap();
    fill(&mut ring, 0);
    let expected = ring.buffer(0).to_vec();
    ring.write(0, 0..PIECE_BYTES, &writer, 0).unwrap();
    ring.submit().unwrap();
    drop(writer);
    let is_read = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            // A drop that does not wait is over by then.
            std::thread::sleep(Duration::from_millis(50));
            is_read.store(true, SeqCst);
            let mut found = Vec::new();
            reader.read_to_end(&mut found).unwrap();
            found
        });
        drop(ring);
        assert!(is_read.load(SeqCst), "the kernel still had the buffer");
        // Other memory of the same size takes its place.
        let other = vec![0xee_u8; PIECE_BYTES];
        let found = reading.join().unwrap();
        // The kernel may end a write to a pipe early; what it has taken is right.
        let (first, second) = found.split_at(64 << 10);
        assert!(first.iter().all(|byte| *byte == 1));
        assert!(!second.is_empty() && expected.starts_with(second), "{} bytes", second.len());
        drop(other);
    });
}

#[test]
fn a_ring_goes_on_after_the_thread_that_used_it() {
    let Some(mut ring) = ring() else { return };
    let (mut reader, writer) = pipe();
    fill(&mut ring, 0);
    let mut ring = std::thread::spawn(move || {
        ring.write(0, 0..4096, &writer, 0).unwrap();
        ring.submit().unwrap();
        ring
    })
    .join()
    .unwrap();
    let taken = take_all(&mut ring);
    // It was written, or given up with its thread.
    match &taken[..] {
        [Completion { result: Ok(4096), .. }] => {
            let mut found = [0; 4096];
            reader.read_exact(&mut found).unwrap();
            assert_eq!(found, ring.buffer(0)[..4096]);
        }
        [done] => assert_eq!(code(done), Some(libc::ECANCELED)),
        _ => panic!("{taken:?}"),
    }
}

#[test]
fn storage_is_taken_ahead() {
    let Some(mut ring) = ring() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = File::options().write(true).create_new(true).open(dir.path().join("f")).unwrap();
    match ring.reserve(&file, 4096..1 << 20) {
        Ok(()) => assert_eq!(file.metadata().unwrap().len(), 1 << 20),
        Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP)),
    }
}
