//! A bank transfer and its journal entry, in two keyspaces and one atomic batch.
//!
//! Run with `cargo run --example batch_across_keyspaces [DIRECTORY]`.

use terrace::{Db, Keyspace, Result, WriteBatch};

fn main() -> Result<()> {
    let path =
        std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("terrace-bank"), Into::into);
    let db = Db::open(path)?;
    let bank = Bank { accounts: db.keyspace("accounts")?, journal: db.keyspace("journal")?, db };

    let mut opening = WriteBatch::new();
    opening.put_in(&bank.accounts, "ada", encode(100));
    opening.put_in(&bank.accounts, "grace", encode(20));
    bank.db.write(opening)?;

    for (from, to, amount) in [("ada", "grace", 30), ("grace", "ada", 500)] {
        let done = bank.transfer(from, to, amount)?;
        println!("{from} -> {to}, {amount}: {}", if done { "done" } else { "not enough money" });
    }

    for account in bank.accounts.iter()? {
        let (name, balance) = account?;
        println!("{:6} {:4}", String::from_utf8_lossy(&name), decode(&balance));
    }
    for entry in bank.journal.iter()? {
        println!("journal: {}", String::from_utf8_lossy(&entry?.1));
    }
    bank.db.close()
}

struct Bank {
    db: Db,
    accounts: Keyspace,
    journal: Keyspace,
}

impl Bank {
    /// Moves money; false when there is not enough. Assumes that no other thread moves money at the same time.
    fn transfer(&self, from: &str, to: &str, amount: u64) -> Result<bool> {
        let (from_balance, to_balance) = (self.balance(from)?, self.balance(to)?);
        let Some(rest) = from_balance.checked_sub(amount) else { return Ok(false) };
        let entry = self.journal.iter()?.count() as u64;

        // After a crash either all three are there or none.
        let mut batch = WriteBatch::new();
        batch.put_in(&self.accounts, from, encode(rest));
        batch.put_in(&self.accounts, to, encode(to_balance + amount));
        batch.put_in(&self.journal, encode(entry), format!("{from} pays {to} {amount}"));
        self.db.write(batch)?;
        Ok(true)
    }

    fn balance(&self, account: &str) -> Result<u64> {
        Ok(self.accounts.get(account)?.map_or(0, |balance| decode(&balance)))
    }
}

/// Twenty digits: their bytewise order is the order of the numbers.
fn encode(number: u64) -> String {
    format!("{number:020}")
}

fn decode(digits: &[u8]) -> u64 {
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
