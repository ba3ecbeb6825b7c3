//! What the windows of one level of load say: latencies with and without background work, and how well it can be noticed.

use std::collections::BTreeMap;

use super::auc::rank_auc;
use super::logistic::{Example, logistic_auc};
use super::report::{
    KindReport, LevelReport, Row, SIGNALS, Split, Told, WINDOWS_WANTED, WindowCounts, Worst,
};
use super::waits::Waits;
use super::window::{Kind, Window};
use crate::latency::{Latency, LatencySummary};
use crate::recording::Curve;

/// Seconds of a block of time of the regression, and how many blocks there are at least and at most.
const BLOCK_S: f64 = 15.0;
const BLOCKS_MIN: usize = 5;
const BLOCKS_MAX: usize = 20;

/// Windows in a second, and in the ten seconds of which the worst are looked for.
const SECOND: usize = 2;
const TEN_SECONDS: usize = 20;

/// A second is kept up with if no less and no more than this is missing.
const KEPT_UP: f64 = 0.05;

/// The signals of one window.
type Signals = [Option<f64>; SIGNALS.len()];

/// The windows that count.
pub struct Level {
    windows: Vec<Window>,
    warm_up: usize,
}

impl Level {
    /// The first `warm_up` windows do not count.
    pub fn new(windows: Vec<Window>, warm_up: usize) -> Self {
        Self { warm_up: warm_up.min(windows.len()), windows }
    }

    fn counts(&self, index: usize) -> bool {
        index >= self.warm_up && !self.windows[index].is_stolen()
    }

    fn kept(&self) -> impl Iterator<Item = (usize, &Window)> {
        self.windows.iter().enumerate().filter(|(index, _)| self.counts(*index))
    }

    /// All but what the caller knows: names, the rate and the floor.
    pub fn report(&self) -> LevelReport {
        let after = &self.windows[self.warm_up..];
        let stolen = after.iter().filter(|window| window.is_stolen()).count();
        let seconds: f64 = self.kept().map(|(_, window)| window.seconds).sum();
        let per_s = |count: u64| count as f64 / seconds.max(f64::MIN_POSITIVE);
        LevelReport {
            offered_per_s: per_s(self.kept().map(|(_, window)| window.offered).sum()),
            completed_per_s: per_s(self.kept().map(|(_, window)| window.completed()).sum()),
            windows: WindowCounts {
                warm_up: self.warm_up,
                stolen,
                kept: after.len() - stolen,
                stolen_share: mean(after, |window| window.stolen_share),
                others_share: mean(after, |window| window.others_share),
            },
            seconds_kept_up: self.seconds_kept_up(),
            worst: self.worst(),
            all: self.kind(|_| true),
            splits: [Told::Outside, Told::Inside].into_iter().filter_map(|told| self.split(told)).collect(),
            course: self.rows(),
            ..LevelReport::default()
        }
    }

    /// Share of the seconds in which as much ended as arrived, to 5 %; those with a window that does not count are no
    /// seconds.
    fn seconds_kept_up(&self) -> Option<f64> {
        let indices: Vec<usize> = (self.warm_up..self.windows.len()).collect();
        let seconds: Vec<bool> = indices
            .chunks_exact(SECOND)
            .filter(|second| second.iter().all(|&index| self.counts(index)))
            .map(|second| {
                let sum = |part: fn(&Window) -> u64| -> f64 {
                    second.iter().map(|&index| part(&self.windows[index])).sum::<u64>() as f64
                };
                let offered = sum(|window| window.offered);
                (sum(Window::completed) - offered).abs() <= KEPT_UP * offered
            })
            .collect();
        let kept_up = seconds.iter().filter(|kept_up| **kept_up).count();
        (!seconds.is_empty()).then(|| kept_up as f64 / seconds.len() as f64)
    }

    /// The worst ten seconds by each figure, of those of which at least half counts.
    fn worst(&self) -> Worst {
        let length = TEN_SECONDS.min(self.windows.len() - self.warm_up);
        let mut worst = Worst { throughput_share: 1.0, ..Worst::default() };
        for start in (self.warm_up..=self.windows.len() - length).step_by(SECOND) {
            let counted = (start..start + length).filter(|&index| self.counts(index));
            let counted: Vec<&Window> = counted.map(|index| &self.windows[index]).collect();
            if counted.is_empty() || counted.len() * 2 < length {
                continue;
            }
            let offered: u64 = counted.iter().map(|window| window.offered).sum();
            let completed: u64 = counted.iter().map(|window| window.completed()).sum();
            let share = completed as f64 / offered.max(1) as f64;
            worst.throughput_share = worst.throughput_share.min(share);
            let p99 = |kind: fn(&Window) -> &Kind| {
                let mut latency = Latency::coarse();
                counted.iter().for_each(|window| kind(window).arrival.add_to(&mut latency));
                if latency.is_empty() { 0.0 } else { latency.summary().p99 }
            };
            worst.read_p99_us = worst.read_p99_us.max(p99(|window| &window.reads));
            worst.write_p99_us = worst.write_p99_us.max(p99(|window| &window.writes));
        }
        worst
    }

    /// The figures of the windows that count and that `choose` chooses by their place.
    fn kind(&self, choose: impl Fn(usize) -> bool) -> KindReport {
        let chosen: Vec<&Window> =
            self.kept().filter(|(index, _)| choose(*index)).map(|(_, window)| window).collect();
        let latency = |part: fn(&Window) -> &super::window::Counts| {
            let mut latency = Latency::coarse();
            chosen.iter().for_each(|window| part(window).add_to(&mut latency));
            latency
        };
        let told = |latency: Latency| (!latency.is_empty()).then(|| latency.summary());
        let waits = |part: fn(&Window) -> &Waits| {
            let mut waits = Waits::default();
            chosen.iter().for_each(|window| waits.add(part(window)));
            waits
        };
        let (reads, writes) =
            (latency(|window| &window.reads.arrival), latency(|window| &window.writes.arrival));
        let curves = [("read", &reads), ("write", &writes)].into_iter();
        let curves = curves.filter(|(_, latency)| !latency.is_empty());
        KindReport {
            windows: chosen.len(),
            operations: chosen.iter().map(|window| window.completed()).sum(),
            curves: curves.map(|(name, latency)| (name.to_owned(), Curve(latency.curve()))).collect(),
            read: told(reads),
            write: told(writes),
            read_service: told(latency(|window| &window.reads.service)),
            write_service: told(latency(|window| &window.writes.service)),
            read_waits: waits(|window| &window.reads.waits),
            write_waits: waits(|window| &window.writes.waits),
            between_waits: waits(|window| &window.between),
        }
    }

    /// Which windows have background work, by their place, and by what that was decided: whether there was any, or, where
    /// too few windows have none or too few have any, whether there was as much as in the median. None where it is not told.
    fn busy(&self, told: Told) -> Option<(Vec<bool>, bool)> {
        let present: Option<Vec<bool>> = self
            .windows
            .iter()
            .map(|window| match told {
                Told::Outside => Some(window.is_busy_outside()),
                Told::Inside => window.is_busy_inside(),
            })
            .collect();
        let present = present?;
        let kept: Vec<usize> = self.kept().map(|(index, _)| index).collect();
        let with = kept.iter().filter(|&&index| present[index]).count();
        let enough = WINDOWS_WANTED.min(kept.len() / 4).max(1);
        let amount = |window: &Window| match told {
            Told::Outside => window.background_share(),
            Told::Inside => window.inside.map_or(0.0, |inside| inside.background_bytes as f64),
        };
        let mut amounts: Vec<f64> = kept.iter().map(|&index| amount(&self.windows[index])).collect();
        amounts.sort_by(f64::total_cmp);
        let median = amounts.get(amounts.len() / 2).copied().unwrap_or(0.0);
        let more = amounts.iter().filter(|&&amount| amount >= median).count();
        if with.min(kept.len() - with) >= enough || more == kept.len() {
            return Some((present, false));
        }
        Some((self.windows.iter().map(|window| amount(window) >= median).collect(), true))
    }

    fn split(&self, told: Told) -> Option<Split> {
        let (busy, by_median) = self.busy(told)?;
        let (with, without) = (self.kind(|index| busy[index]), self.kind(|index| !busy[index]));
        let signals = self.signals();
        let of_kind = |signal: usize, kind: bool| -> Vec<f64> {
            let places = self.kept().filter(|(index, _)| busy[*index] == kind);
            places.filter_map(|(index, _)| signals[index][signal]).collect()
        };
        let auc = (0..SIGNALS.len())
            .filter_map(|signal| {
                let auc = rank_auc(&of_kind(signal, true), &of_kind(signal, false))?;
                Some((SIGNALS[signal].to_owned(), auc))
            })
            .collect();
        // Space is what compactions change by being compactions; clients do not notice it.
        let space = SIGNALS.len() - 1;
        let ratio = |part: fn(&KindReport) -> &Option<LatencySummary>| {
            let (with, without) = (part(&with).as_ref()?, part(&without).as_ref()?);
            Some(with.p99 / without.p99.max(f64::MIN_POSITIVE))
        };
        Some(Split {
            told,
            by_median,
            read_p99_ratio: ratio(|kind| &kind.read),
            write_p99_ratio: ratio(|kind| &kind.write),
            auc,
            auc_clients: logistic_auc(&self.examples(&signals, &busy, space)),
            auc_all: logistic_auc(&self.examples(&signals, &busy, SIGNALS.len())),
            with,
            without,
        })
    }

    /// The first `count` signals of the windows that count, but for those that some window does not have.
    fn examples(&self, signals: &[Signals], busy: &[bool], count: usize) -> Vec<Example> {
        let kept: Vec<usize> = self.kept().map(|(index, _)| index).collect();
        let complete: Vec<usize> =
            (0..count).filter(|&signal| kept.iter().all(|&index| signals[index][signal].is_some())).collect();
        let seconds = (self.windows.len() - self.warm_up) as f64 / SECOND as f64;
        let blocks = ((seconds / BLOCK_S) as usize).clamp(BLOCKS_MIN, BLOCKS_MAX);
        let length = (self.windows.len() - self.warm_up).div_ceil(blocks).max(1);
        kept.into_iter()
            .map(|index| Example {
                block: (index - self.warm_up) / length,
                signals: complete.iter().filter_map(|&signal| signals[index][signal]).collect(),
                with: busy[index],
            })
            .collect()
    }

    /// The signals of every window; what is worse for clients is higher. Latencies by their logarithm.
    fn signals(&self) -> Vec<Signals> {
        let p99 = |kind: fn(&Window) -> &Kind| -> Vec<Option<f64>> {
            let mut p99: Vec<Option<f64>> =
                self.windows.iter().map(|window| kind(window).arrival.quantile_us(0.99)).collect();
            // Where nothing ends, what ends next has waited.
            for index in (1..p99.len()).rev() {
                p99[index - 1] = p99[index - 1].or(p99[index]);
            }
            p99.into_iter().map(|us| us.map(|us| us.max(0.001).log10())).collect()
        };
        let (reads, writes) = (p99(|window| &window.reads), p99(|window| &window.writes));
        let hit_ratio = |window: &Window| {
            let inside = window.inside?;
            let all = inside.cache_hits + inside.cache_misses;
            (all > 0).then(|| inside.cache_hits as f64 / all as f64)
        };
        let signals = self.windows.iter().enumerate().map(|(index, window)| {
            let before = &self.windows[index.saturating_sub(1)];
            [
                reads[index],
                writes[index],
                hit_ratio(window).map(|ratio| -ratio),
                Some(window.disk_bytes as f64 / window.reads.service.count().max(1) as f64),
                Some(-(window.completed() as f64) / window.offered.max(1) as f64),
                Some(window.space_bytes as f64 - before.space_bytes as f64),
            ]
        });
        signals.collect()
    }

    fn rows(&self) -> Vec<Row> {
        let p99 = |kind: &Kind| kind.arrival.quantile_us(0.99);
        let rows = self.windows.iter().enumerate().map(|(index, window)| Row {
            start_s: window.start_s,
            counts: self.counts(index),
            offered: window.offered,
            completed: window.completed(),
            read_p99_us: p99(&window.reads),
            write_p99_us: p99(&window.writes),
            with_outside: window.is_busy_outside(),
            with_inside: window.is_busy_inside(),
            background_share: rounded(window.background_share()),
            stolen_share: rounded(window.stolen_share),
            others_share: rounded(window.others_share),
            written_bytes: window.written_bytes,
            written_beyond_log: window.written_beyond_log(),
            read_bytes: window.read_bytes,
            client_read_bytes: window.disk_bytes,
            space_bytes: window.space_bytes,
            level0_bytes: window.inside.map(|inside| inside.level0_bytes),
            debt_bytes: window.inside.map(|inside| inside.debt_bytes),
            stall_ms: window.inside.map(|inside| inside.stall_ms),
        });
        rows.collect()
    }
}

/// The mean of a figure; 0 of none.
fn mean(windows: &[Window], of: fn(&Window) -> f64) -> f64 {
    windows.iter().map(of).sum::<f64>() / windows.len().max(1) as f64
}

/// To a thousandth.
fn rounded(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}

/// What an engine that does nothing shows.
pub fn floor(windows: Vec<Window>) -> BTreeMap<String, LatencySummary> {
    let all = Level::new(windows, 0).kind(|_| true);
    let kinds = [
        ("read", all.read),
        ("write", all.write),
        ("read, service", all.read_service),
        ("write, service", all.write_service),
    ];
    kinds.into_iter().filter_map(|(name, summary)| Some((name.to_owned(), summary?))).collect()
}

#[cfg(test)]
mod tests;
