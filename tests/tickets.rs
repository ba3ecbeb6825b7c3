//! Tests of tickets: a write that one calls durable survives, every waiter is notified once, and callbacks do no
//! harm.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::{
    FaultError, FaultRule, FaultTarget, Journal, Operation, SimConfig, SimEnv, Survival,
};
use terrace::env::sync::Mutex;
use terrace::{Db, Durability, ErrorKind, Isolation, Ticket, TransactionOptions, WriteBatch};
use terrace_torture::client::open;
use terrace_torture::{Replay, tiny};

fn key(n: u64) -> Vec<u8> {
    format!("{n:04}").into_bytes()
}

fn one(n: u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    // So large that segments of the log and memtables come and go.
    batch.put(key(n), key(n).repeat(100));
    batch
}

/// What was called durable, by whatever way.
type Told = Arc<Mutex<BTreeSet<u64>>>;

/// Writes with tickets until the power is cut, and tells of each that it is durable as soon as the ticket does. Whether all went
/// well.
fn write_with_tickets(env: &Arc<SimEnv>, told: &Told) -> terrace::Result<()> {
    let db = open(env, &tiny())?;
    let mut tickets: Vec<(u64, Ticket)> = Vec::new();
    for n in 0..80 {
        let ticket = match n % 5 {
            4 => {
                let mut transaction =
                    db.transaction_with(TransactionOptions { isolation: Isolation::Serializable });
                transaction.put(key(n), key(n).repeat(100));
                transaction.commit_ticket()?
            }
            3 => {
                db.write_with(one(n), Durability::Buffered)?;
                db.sync_ticket()?
            }
            _ => db.write_ticket(one(n))?,
        };
        let heard = told.clone();
        ticket.on_durable(move |outcome| {
            if outcome.is_ok() {
                heard.lock().insert(n);
            }
        })?;
        tickets.push((n, ticket));
        match n {
            20 | 50 => db.flush()?,
            35 => db.put_with("synced", "", Durability::Synced)?,
            60 => env.sleep(Duration::from_millis(3)),
            _ => {}
        }
        told.lock().extend(tickets.iter().filter(|(_, ticket)| ticket.is_durable()).map(|(n, _)| n));
        if n % 16 == 7 {
            tickets.last().unwrap().1.wait()?;
            told.lock().extend(tickets.iter().map(|(n, _)| n));
        }
    }
    db.close()?;
    told.lock().extend(tickets.iter().filter(|(_, ticket)| ticket.is_durable()).map(|(n, _)| n));
    Ok(())
}

#[test]
fn what_a_ticket_called_durable_survives_a_power_cut_at_every_call() {
    let (mut most, mut lost) = (0, 0);
    for (journal, from, step) in [(Journal::Ext4Like, 0, 3), (Journal::None, 1, 3)] {
        for cut in (from..).step_by(step) {
            let told = Told::default();
            let machine = SimEnv::new(SimConfig { seed: cut, journal, ..SimConfig::default() });
            machine.cut_after(cut);
            let heard = told.clone();
            let whole = machine.simulate(move |env| write_with_tickets(&env, &heard).is_ok());
            let told = told.lock().clone();
            most = most.max(told.len());
            for survival in [Survival::Nothing, Survival::Random(cut)] {
                let _replay = Replay(format!("{journal:?}, cut at {cut}, {survival:?}"));
                let there = machine.crash(survival).simulate(|env| {
                    let db = open(&env, &tiny()).unwrap();
                    db.iter()
                        .unwrap()
                        .filter_map(|entry| String::from_utf8_lossy(&entry.unwrap().0).parse::<u64>().ok())
                        .collect::<BTreeSet<u64>>()
                });
                assert!(told.is_subset(&there), "lost: {:?}", told.difference(&there));
                lost += usize::from(!whole && there.len() < 80);
            }
            if whole {
                assert_eq!(told.len(), 80, "{:?}", told);
                break;
            }
        }
    }
    assert!(most == 80 && lost > 100, "{most}, {lost}");
}

/// What a write of a single key or range says of its durability holds.
#[test]
fn single_writes_are_as_durable_as_they_say() {
    let machine = SimEnv::new(SimConfig::default());
    machine.simulate(|env| {
        let db = open(&env, &tiny()).unwrap();
        let users = db.keyspace("users").unwrap();
        db.put_with("a", "1", Durability::Synced).unwrap();
        (0..9).for_each(|n| db.put_with(key(n), "1", Durability::Buffered).unwrap());
        users.put_with("a", "1", Durability::Synced).unwrap();
        users.put("b", "1").unwrap();
        users.delete_with("a", Durability::Synced).unwrap();
        db.delete_range_with(key(3)..=key(5), Durability::Synced).unwrap();
        users.put_with("later", "1", Durability::Buffered).unwrap();
        db.delete_with("a", Durability::Buffered).unwrap();
        db.delete_prefix("000").unwrap();
        users.clear().unwrap();
        let syncs = db.stats().syncs.wal;
        users.delete_range_with(.., Durability::Buffered).unwrap();
        assert_eq!(db.stats().syncs.wal, syncs);
        assert!(db.is_empty().unwrap() && users.is_empty().unwrap());
        // What closing would sync.
        env.cut_after(0);
    });
    machine.crash(Survival::Nothing).simulate(|env| {
        let db = open(&env, &tiny()).unwrap();
        let users = db.keyspace("users").unwrap();
        let keys: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap().0.to_vec()).collect();
        assert_eq!(keys, [0, 1, 2, 6, 7, 8].map(key).into_iter().chain([b"a".to_vec()]).collect::<Vec<_>>());
        assert_eq!(
            (users.first().unwrap().unwrap().0, users.iter().unwrap().count()),
            ("b".as_bytes().into(), 1)
        );
    });
}

#[test]
fn many_tickets_share_a_sync() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        db.put_with("first", "", Durability::Synced).unwrap();
        let before = db.stats().syncs.wal;
        let tickets: Vec<Ticket> = (0..100)
            .map(|n| {
                let mut batch = WriteBatch::new();
                batch.put(key(n), "");
                db.write_ticket(batch).unwrap()
            })
            .collect();
        tickets.iter().for_each(|ticket| ticket.wait().unwrap());
        assert!(tickets.iter().all(Ticket::is_durable));
        let syncs = db.stats().syncs.wal - before;
        assert!((1..50).contains(&syncs), "{syncs} syncs for 100 tickets");
        // Nothing new to sync: no sync.
        db.sync_ticket().unwrap().wait().unwrap();
        assert_eq!(db.stats().syncs.wal - before, syncs);
    });
}

/// Collects outcomes of callbacks.
type Outcomes = Arc<Mutex<Vec<Result<(), ErrorKind>>>>;

fn note(ticket: &Ticket, outcomes: &Outcomes) {
    let outcomes = outcomes.clone();
    ticket.on_durable(move |outcome| outcomes.lock().push(outcome.map_err(|e| e.kind()))).unwrap();
}

fn wait_for(env: &SimEnv, outcomes: &Outcomes, count: usize) -> Vec<Result<(), ErrorKind>> {
    while outcomes.lock().len() < count {
        env.sleep(Duration::from_millis(1));
    }
    outcomes.lock().clone()
}

#[test]
fn a_failed_sync_fails_its_tickets_and_all_later_ones() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        let good = db.write_ticket(one(0)).unwrap();
        good.wait().unwrap();
        let target =
            FaultTarget::Matching { operation: Operation::Sync, path_suffix: ".wal".into(), skipped: 0 };
        env.fault(FaultRule { target, error: FaultError::Io, sticky: false, partial: false });
        let bad = db.write_ticket(one(1)).unwrap();
        let outcomes = Outcomes::default();
        note(&bad, &outcomes);
        assert!(matches!(bad.wait().unwrap_err().kind(), ErrorKind::Io | ErrorKind::Poisoned));
        assert!(!bad.is_durable());
        note(&good, &outcomes);
        note(&bad, &outcomes);
        let heard = wait_for(&env, &outcomes, 3);
        assert!(matches!(heard[..], [Err(_), Ok(()), Err(_)]), "{heard:?}");
        assert_eq!(db.write_ticket(one(2)).unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(db.sync_ticket().unwrap_err().kind(), ErrorKind::Poisoned);
        assert!(!db.contains(key(2)).unwrap());
        drop(db);
        // The second answer equals the first.
        assert!(bad.wait().is_err() && good.wait().is_ok());
    });
}

#[test]
fn whatever_poisons_the_store_fails_the_tickets_that_wait() {
    for seed in 0..10 {
        let _replay = Replay(format!("seed {seed}"));
        SimEnv::run(SimConfig { seed, preemption_percent: 50, ..SimConfig::default() }, |env| {
            let db = open(&env, &tiny()).unwrap();
            let target = FaultTarget::Matching {
                operation: Operation::SyncDir,
                path_suffix: String::new(),
                skipped: 0,
            };
            env.fault(FaultRule { target, error: FaultError::Io, sticky: true, partial: false });
            let tickets: Vec<Ticket> = (0..200).map_while(|n| db.write_ticket(one(n)).ok()).collect();
            assert!(tickets.len() < 200, "nothing has failed");
            let outcomes = Outcomes::default();
            tickets.iter().for_each(|ticket| note(ticket, &outcomes));
            // Nobody waits for ever.
            let waited = tickets.iter().map(|ticket| ticket.wait().map_err(|e| e.kind()));
            let waited: Vec<_> = waited.collect();
            wait_for(&env, &outcomes, tickets.len());
            assert!(waited.is_sorted_by_key(|outcome| outcome.is_err()), "{waited:?}");
            assert!(matches!(waited.last(), None | Some(Ok(()) | Err(ErrorKind::Poisoned))), "{waited:?}");
        });
    }
}

#[test]
fn closing_makes_what_waits_durable_and_calls_back_all_the_same() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        let outcomes = Outcomes::default();
        let tickets: Vec<Ticket> = (0..20).map(|n| db.write_ticket(one(n)).unwrap()).collect();
        tickets.iter().for_each(|ticket| note(ticket, &outcomes));
        let other = db.clone();
        db.close().unwrap();
        assert!(tickets.iter().all(|ticket| ticket.is_durable() && ticket.wait().is_ok()));
        // Asked for after the end, too.
        note(&tickets[7], &outcomes);
        assert_eq!(wait_for(&env, &outcomes, 21), vec![Ok(()); 21]);
        assert_eq!(other.sync_ticket().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(other.write_ticket(one(0)).unwrap_err().kind(), ErrorKind::Closed);
        drop(other);
        // A ticket holds no store open.
        let again = open(&env, &tiny()).unwrap();
        assert_eq!(again.iter().unwrap().count(), 20);
    });
}

#[test]
fn a_callback_may_take_long_panic_or_close_the_store() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        let ticket = db.write_ticket(one(0)).unwrap();
        let sleeper = env.clone();
        ticket.on_durable(move |_| sleeper.sleep(Duration::from_secs(3600))).unwrap();
        ticket.on_durable(|_| std::panic::resume_unwind(Box::new("fault of the caller"))).unwrap();
        env.sleep(Duration::from_millis(50));
        let begin = env.now();
        for n in 1..50 {
            db.write_ticket(one(n)).unwrap().wait().unwrap();
        }
        assert!(env.now() - begin < Duration::from_secs(600), "syncs wait for a callback");
        let outcomes = Outcomes::default();
        let last = db.sync_ticket().unwrap();
        // The last handle goes in the callback, which closes the store.
        ticket.on_durable(move |_| drop(db)).unwrap();
        note(&last, &outcomes);
        assert_eq!(wait_for(&env, &outcomes, 1), [Ok(())]);
        assert_eq!(open(&env, &tiny()).unwrap().iter().unwrap().count(), 50);
    });
}

#[test]
fn a_store_that_is_only_read_gives_no_tickets() {
    SimEnv::run(SimConfig::default(), |env| {
        drop(open(&env, &tiny()).unwrap());
        let dir = std::path::Path::new(terrace_torture::client::DIR);
        let reader = Db::builder(dir).env(env).read_only().open().unwrap();
        assert_eq!(reader.sync_ticket().unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(reader.write_ticket(one(0)).unwrap_err().kind(), ErrorKind::ReadOnly);
    });
}
