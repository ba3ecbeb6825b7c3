//! A small store under a load that it can hardly bear, and an HTTP server that tells Prometheus of it.
//!
//! Run with `cargo run -p terrace-metrics --features serve --example serve [ADDRESS [DIRECTORY]]`; port 0 takes a free one.
//! It says where it serves, and runs until it is ended.
#![expect(clippy::disallowed_methods, reason = "a program lives in real time")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use terrace::tree::{Governor, Pacer, Steady};
use terrace::{Db, Keyspace, Options, Result, TreeOptions};
use terrace_metrics::{CONTENT_TYPE, Monitor, Operation, Picture, prometheus};
use tokio::net::TcpListener;

const KEYS: u64 = 100_000;

/// A round of what a client does.
type Client = fn(&Db, &Keyspace, &Monitor, u64) -> Result<()>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:9184".to_owned());
    let dir = arguments.next().map_or_else(|| std::env::temp_dir().join("terrace-serve"), PathBuf::from);

    let monitor = Arc::new(Monitor::default());
    let db = Db::builder(dir).options(cramped()).listener(monitor.clone()).open()?;
    let users = db.keyspace("users")?;
    for client in [write as Client, read, scan, transact] {
        let (users, db, monitor) = (users.clone(), db.clone(), monitor.clone());
        thread::spawn(move || {
            let ended = (1..).try_for_each(|round| client(&db, &users, &monitor, round));
            ended.inspect_err(|error| eprintln!("a client ends: {error}"))
        });
    }

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(&address, db, monitor))?;
    Ok(())
}

async fn serve(address: &str, db: Db, monitor: Arc<Monitor>) -> std::io::Result<()> {
    let metrics = move || {
        let text = prometheus(&[Picture::of(&db.stats()).monitor(&monitor)]);
        async move { ([(header::CONTENT_TYPE, CONTENT_TYPE)], text) }
    };
    let listener = TcpListener::bind(address).await?;
    println!("http://{}/metrics", listener.local_addr()?);
    axum::serve(listener, Router::new().route("/metrics", get(metrics))).await
}

/// A store so small that all that can happen to one does so within seconds.
fn cramped() -> Options {
    let limits = Governor { l0_slow: 4, l0_stop: 6, ..Governor::default() };
    let pacer = Pacer::Steady(Steady { limits, ..Steady::default() });
    Options {
        memory_bytes: Some(8 << 20),
        memtable_bytes: 256 << 10,
        wal_bytes_max: 4 << 20,
        tree: TreeOptions { pacer, ..TreeOptions::default() },
        ..Options::default()
    }
}

/// Keys in no order, each once in a round.
fn key(n: u64) -> String {
    format!("user{:08}", n * 61_729 % KEYS)
}

/// A burst of puts, a key that the store refuses, and a sync.
fn write(db: &Db, users: &Keyspace, monitor: &Monitor, round: u64) -> Result<()> {
    for n in round * 20_000..(round + 1) * 20_000 {
        let value = vec![b'x'; 100 + (n % 400) as usize];
        monitor.time(Operation::Write, || users.put(key(n), value))?;
    }
    let refused = monitor.time(Operation::Write, || users.put(vec![b'k'; 1 << 16], "refused"));
    assert!(refused.is_err(), "a key of 64 KiB is too long");
    monitor.time(Operation::Sync, || db.sync())?;
    thread::sleep(Duration::from_millis(500));
    Ok(())
}

fn read(_: &Db, users: &Keyspace, monitor: &Monitor, round: u64) -> Result<()> {
    for n in round * 200..(round + 1) * 200 {
        monitor.time(Operation::Get, || users.get(key(7 * n)))?;
    }
    let keys: Vec<_> = (round..round + 10).map(key).collect();
    monitor.time(Operation::MultiGet, || users.multi_get(&keys))?;
    thread::sleep(Duration::from_millis(1));
    Ok(())
}

fn scan(_: &Db, users: &Keyspace, monitor: &Monitor, round: u64) -> Result<()> {
    let entries = || users.range(key(round)..)?.take(50).collect::<Result<Vec<_>>>();
    monitor.time(Operation::Scan, entries)?;
    thread::sleep(Duration::from_millis(2));
    Ok(())
}

/// Two transactions that want the same key: the second one to commit is refused.
fn transact(db: &Db, users: &Keyspace, monitor: &Monitor, _: u64) -> Result<()> {
    let begin = || -> Result<_> {
        let mut transaction = db.transaction();
        let visits = transaction.get_in(users, "visits")?.map_or(0, |visits| visits.len());
        transaction.put_in(users, "visits", vec![b'v'; (visits + 1) % 100]);
        Ok(transaction)
    };
    let (first, second) = (begin()?, begin()?);
    monitor.time(Operation::Commit, || first.commit())?;
    let conflict = monitor.time(Operation::Commit, || second.commit());
    assert!(conflict.is_err(), "both have written the same key");
    thread::sleep(Duration::from_millis(100));
    Ok(())
}
