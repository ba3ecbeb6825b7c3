//! Tickets: notice that a write has become durable.

use std::fmt;
use std::sync::Arc;

use super::Db;
use crate::batch::WriteBatch;
use crate::engine::Tickets;
use crate::error::Result;
use crate::options::Durability;
use crate::types::Seq;

/// Says when a buffered write has become durable, without a thread that waits for it. It is for an appender of a
/// replicated log, or an executor that must not block.
///
/// [`Db::write_ticket`], [`Db::sync_ticket`] and [`Transaction::commit_ticket`](crate::Transaction::commit_ticket)
/// return one. A background thread syncs the log at once: one sync for all tickets given by then, and for
/// [`Durability::Synced`] writes beside them. The sync happens even if the ticket is dropped.
///
/// A ticket says *durable* only after a sync that covers its write, and all writes before it. If that sync fails, or
/// the store is poisoned first, the ticket fails: the write is visible, and whether it survives a power cut is
/// unknown until the store is opened again. [`Db::close`] syncs too: open tickets then succeed, or fail as `close`
/// does. A ticket never waits for ever, and keeps neither the store nor its directory open.
///
/// ```
/// use std::sync::mpsc::channel;
/// use terrace::{Db, WriteBatch};
/// # let dir = tempfile::tempdir().unwrap();
/// let db = Db::open(dir.path())?;
/// let (sender, receiver) = channel();
/// for index in 0..3 {
///     let mut entry = WriteBatch::new();
///     entry.put(format!("log/{index}"), "entry");
///     let sender = sender.clone();
///     // Returns at once. The entry is visible, the callback comes when it is durable.
///     db.write_ticket(entry)?.on_durable(move |outcome| _ = sender.send(outcome.map(|()| index)))?;
/// }
/// let acknowledged: Vec<i32> = receiver.iter().take(3).collect::<terrace::Result<_>>()?;
/// assert_eq!(acknowledged, [0, 1, 2]);
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "the sync happens without it, but nobody learns of it"]
pub struct Ticket {
    tickets: Arc<Tickets>,
    seq: Seq,
}

impl Ticket {
    pub(super) fn new(tickets: Arc<Tickets>, seq: Seq) -> Self {
        Self { tickets, seq }
    }

    /// Whether the write is known to be durable. Does not wait.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// let ticket = db.sync_ticket()?;
    /// ticket.wait()?;
    /// assert!(ticket.is_durable());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn is_durable(&self) -> bool {
        matches!(self.tickets.outcome(self.seq), Some(Ok(())))
    }

    /// Waits until the write is durable, or it is known that it will not be.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut batch = terrace::WriteBatch::new();
    /// batch.put("key", "value");
    /// let ticket = db.write_ticket(batch)?;
    /// // ... other work, while the disk has its ...
    /// ticket.wait()?; // survives a power cut from here on
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` when the sync has failed; `Poisoned` when the store was poisoned before it; `Closed` when the store was
    /// closed and could not sync. It is then unknown whether the write survives.
    pub fn wait(&self) -> Result<()> {
        self.tickets.wait(self.seq)
    }

    /// Has `callback` called once, when the write is durable or it is known that it will not be; soon, if that is
    /// known already. The callbacks of all tickets run on one thread of the store that does nothing else, under no
    /// lock, in the order of their writes as far as the results become known in that order. A slow callback delays
    /// the others, but no sync and no write. A panic ends only that callback. A callback may use the store, and may
    /// close it; callbacks are called even after that.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.sync_ticket()?.on_durable(|outcome| match outcome {
    ///     Ok(()) => println!("on disk"),
    ///     Err(error) => eprintln!("who knows: {error}"),
    /// })?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` when the thread cannot be started: `callback` is then dropped, not called. `callback` itself receives the
    /// errors of [`Ticket::wait`].
    pub fn on_durable(&self, callback: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        self.tickets.on_durable(self.seq, Box::new(callback))
    }
}

impl Db {
    /// Applies `batch` atomically, as a buffered write whatever the options say, and returns at once. The ticket says
    /// when it has become durable.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut batch = terrace::WriteBatch::new();
    /// batch.put("key", "value");
    /// let ticket = db.write_ticket(batch)?;
    /// assert!(db.contains("key")?); // visible, whether durable or not
    /// ticket.wait()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::write`]; `Io` when the thread that syncs cannot be started. Nothing of the batch is applied then.
    pub fn write_ticket(&self, batch: WriteBatch) -> Result<Ticket> {
        let write = &self.engine().write;
        let seq = write.commit_for_ticket(|| write.commit(&batch, Durability::Buffered))?;
        Ok(Ticket::new(write.tickets.clone(), seq))
    }

    /// As [`Db::sync`], without waiting: the ticket says when everything that is acknowledged by now has become
    /// durable.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.sync_ticket()?.wait()?; // as `db.sync()?`
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ReadOnly`, `Closed`, `Poisoned`; `Io` when the thread that syncs cannot be started.
    pub fn sync_ticket(&self) -> Result<Ticket> {
        let write = &self.engine().write;
        Ok(Ticket::new(write.tickets.clone(), write.sync_for_ticket()?))
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("seq", &self.seq.0).finish_non_exhaustive()
    }
}
