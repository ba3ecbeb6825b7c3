//! The space of a store over time, looked at by a thread of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use terrace::env::sync::Mutex;

use crate::Result;
use crate::probe::space_bytes;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(200);

/// The space of a store at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpacePoint {
    /// Seconds since the beginning.
    pub at_s: f64,
    /// Bytes that its files have allocated.
    pub space_bytes: u64,
    /// Bytes of keys and values that live.
    pub live_bytes: u64,
}

impl SpacePoint {
    /// How many times the live bytes are on the disk.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.space_bytes as f64 / self.live_bytes.max(1) as f64
    }
}

/// Looks at a directory again and again until it is dropped.
pub(super) struct Sampler {
    shared: Arc<Shared>,
    /// The other end hangs up when this is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    started: Instant,
    directory: PathBuf,
    live_bytes: AtomicU64,
    points: Mutex<Vec<SpacePoint>>,
}

impl Shared {
    fn look(&self) -> Result<SpacePoint> {
        let at_s = self.started.elapsed().as_secs_f64();
        let space_bytes = space_bytes(&self.directory)?;
        let point = SpacePoint { at_s, space_bytes, live_bytes: self.live_bytes.load(Ordering::Relaxed) };
        self.points.lock().push(point);
        Ok(point)
    }
}

impl Sampler {
    pub(super) fn start(directory: &Path) -> Self {
        let shared = Arc::new(Shared {
            started: Instant::now(),
            directory: directory.to_owned(),
            live_bytes: AtomicU64::new(0),
            points: Mutex::default(),
        });
        let (stop, stopped) = std::sync::mpsc::channel();
        let looking = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                // What cannot be looked at now can be later.
                let _ = looking.look();
            }
        });
        Self { shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Says how many bytes live from now on.
    pub(super) fn lives(&self, bytes: u64) {
        self.shared.live_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Looks now.
    pub(super) fn look(&self) -> Result<SpacePoint> {
        self.shared.look()
    }

    /// Seconds since the beginning.
    pub(super) fn seconds(&self) -> f64 {
        self.shared.started.elapsed().as_secs_f64()
    }

    /// All that was seen.
    pub(super) fn points(&self) -> Vec<SpacePoint> {
        let mut points = self.shared.points.lock().clone();
        points.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        points
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has no results.
            let _ = thread.join();
        }
    }
}
