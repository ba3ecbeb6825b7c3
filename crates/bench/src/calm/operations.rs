//! The operations of the mix: which record is next, whether it is read or written, and with which value.

use serde::{Deserialize, Serialize};

use super::Settings;
use crate::Result;
use crate::generator::{Rng, ScrambledZipfian};
use crate::ycsb::keys::{InsertOrder, KeyFormat};
use crate::ycsb::values::ValueFormat;

/// Which records are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// A few very often: zipfian of 0.99, popular records scattered.
    Zipfian,
    /// All alike.
    Uniform,
}

/// What all clients of a run have in common.
#[derive(Clone, Debug)]
pub struct Mix {
    pub keys: KeyFormat,
    pub values: ValueFormat,
    pub records: u64,
    /// Share of the operations that update.
    updates: f64,
    zipfian: Option<ScrambledZipfian>,
    seed: u64,
}

impl Mix {
    /// # Errors
    /// Keys or values of an impossible size, or more records than the keys can name.
    pub fn new(settings: &Settings) -> Result<Self> {
        let keys = KeyFormat::fixed(InsertOrder::Hashed, settings.key_bytes)?;
        if settings.records == 0 || settings.records > keys.capacity() {
            let capacity = keys.capacity();
            return Err(
                format!("{} records: keys of this size name 1 to {capacity}", settings.records).into()
            );
        }
        if !(0.0..=100.0).contains(&settings.update_percent) {
            return Err("updates are 0 to 100 % of the operations".into());
        }
        let zipfian = settings.distribution == Distribution::Zipfian;
        Ok(Self {
            keys,
            values: ValueFormat::new(settings.value_bytes)?,
            records: settings.records,
            updates: settings.update_percent / 100.0,
            zipfian: zipfian.then(|| ScrambledZipfian::new(0, settings.records)),
            seed: settings.seed,
        })
    }

    /// The operations of one client in one phase.
    pub fn operations(&self, phase: u64, client: u64) -> Operations<'_> {
        let rng = Rng::stream(self.seed, phase << 16 | client << 1);
        let (key, value) = (Vec::new(), Vec::new());
        Operations { mix: self, rng, record: 0, is_write: false, key, value }
    }

    /// The gaps between the arrivals of that client.
    pub fn arrivals(&self, phase: u64, client: u64) -> Rng {
        Rng::stream(self.seed, phase << 16 | client << 1 | 1)
    }
}

/// Operations of one client; what it holds is the one drawn last.
pub struct Operations<'a> {
    mix: &'a Mix,
    rng: Rng,
    pub record: u64,
    pub is_write: bool,
    pub key: Vec<u8>,
    /// Only of a write.
    pub value: Vec<u8>,
}

impl Operations<'_> {
    /// Makes the next one ready.
    pub fn draw(&mut self) {
        self.is_write = self.rng.next_f64() < self.mix.updates;
        self.record = match &self.mix.zipfian {
            Some(zipfian) => zipfian.next(&mut self.rng),
            None => self.rng.below(self.mix.records),
        };
        self.mix.keys.build(self.record, &mut self.key);
        if self.is_write {
            let version = self.rng.next_u64() as u32;
            self.mix.values.fill(self.record, version, &mut self.value);
        }
    }

    /// Whether `value` is one that was written under the key of the last operation.
    pub fn is_right(&self, value: &[u8]) -> bool {
        self.mix.values.check(value).is_some_and(|(record, _)| record == self.record)
    }

    /// Bytes of key and value of a write.
    pub fn bytes(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(distribution: Distribution, update_percent: f64) -> Mix {
        let settings = Settings {
            records: 1000,
            key_bytes: 16,
            value_bytes: 40,
            update_percent,
            distribution,
            ..Settings::default()
        };
        Mix::new(&settings).unwrap()
    }

    #[test]
    fn updates_have_their_share_and_values_tell_whose_they_are() {
        let mix = mix(Distribution::Uniform, 30.0);
        let mut operations = mix.operations(1, 0);
        let mut writes = 0;
        for _ in 0..10_000 {
            operations.draw();
            if operations.is_write {
                writes += 1;
                assert!(operations.is_right(&operations.value));
                assert_eq!(operations.bytes(), 56);
            }
        }
        assert!((2800..3200).contains(&writes), "{writes}");
    }

    #[test]
    fn clients_and_phases_draw_different_records_and_a_seed_replays_them() {
        let mix = mix(Distribution::Zipfian, 0.0);
        let drawn = |phase, client| -> Vec<u64> {
            let mut operations = mix.operations(phase, client);
            (0..50)
                .map(|_| {
                    operations.draw();
                    operations.record
                })
                .collect()
        };
        assert_eq!(drawn(1, 0), drawn(1, 0));
        assert_ne!(drawn(1, 0), drawn(1, 1));
        assert_ne!(drawn(1, 0), drawn(2, 0));
        assert!(drawn(1, 0).iter().all(|&record| record < 1000));
    }

    #[test]
    fn impossible_settings_are_refused() {
        for settings in [
            Settings { records: 0, ..Settings::default() },
            Settings { key_bytes: 6, records: 1000, ..Settings::default() },
            Settings { value_bytes: 5, ..Settings::default() },
            Settings { update_percent: 101.0, ..Settings::default() },
        ] {
            assert!(Mix::new(&settings).is_err(), "{settings:?}");
        }
    }
}
