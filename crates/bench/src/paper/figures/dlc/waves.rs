//! Loads that rise and fall: figures 6, 7, 8 and 10.

use std::time::Duration;

use super::load::{Drive, Driven, Interval, PeakLoad, RUN_TIME, drive, find_peak, steady_share};
use super::{DEVIATIONS, LIMITS_DEVIATION, Testbed, seconds};
use crate::Result;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation, Series};
use crate::workload::{Mix, Rate};

/// A trough has this part of the peak's rate: 300 of 1,200 transactions a second.
const LOW_SHARE: f64 = 0.25;

const HIGH_TIME: Duration = Duration::from_secs(500);
const LOW_TIME: Duration = Duration::from_secs(100);

/// Reads to writes 5:5, 1:9 and 9:1 without scans and updates: 20 operations.
const EVEN: Mix = Mix { gets: 10, scans: 0, updates: 0, replaced: 5 };
const WRITES: Mix = Mix { gets: 2, scans: 0, updates: 0, replaced: 9 };
const READS: Mix = Mix { gets: 18, scans: 0, updates: 0, replaced: 1 };

const MIX_DEVIATION: &str =
    "a transaction without scans and updates has 20 operations; the paper does not say how many";

/// The compared stores: name and profile.
const STORES: [(&str, &str); 3] =
    [("MyRocks", "rocksdb-myrocks"), ("SILK*", "silk-star"), ("DLC", "dlc-full")];

fn wave(peak: &PeakLoad, testbed: &Testbed, high_time: Duration, low_time: Duration) -> Rate {
    Rate::SquareWave {
        high: peak.rate,
        high_time: testbed.time(high_time),
        low: peak.rate * LOW_SHARE,
        low_time: testbed.time(low_time),
    }
}

/// MyRocks, SILK* and DLC under waves of the same peak.
struct Compared {
    stores: Vec<Driven>,
}

impl Compared {
    fn run(setting: &Setting, mix: Mix) -> Result<Self> {
        let testbed = Testbed::new(setting);
        let peak = find_peak(&testbed, mix)?;
        let run = Drive { mix, rate: wave(&peak, &testbed, HIGH_TIME, LOW_TIME), time: RUN_TIME };
        let store = |(_, profile)| drive(&testbed, testbed.options(profile, peak.bytes), &run);
        Ok(Self { stores: STORES.into_iter().map(store).collect::<Result<_>>()? })
    }

    fn series(&self) -> Vec<Series> {
        self.stores.iter().zip(STORES).flat_map(|(driven, (name, _))| driven.series(name)).collect()
    }

    fn steady(&self) -> [f64; 3] {
        std::array::from_fn(|at| steady_share(&self.stores[at].reported()))
    }

    fn p99(&self) -> [f64; 3] {
        std::array::from_fn(|at| self.stores[at].p99(&self.stores[at].reported()))
    }

    /// The fewest transactions that were done in an interval, as a part of those that came.
    fn least(&self) -> [f64; 3] {
        std::array::from_fn(|at| least(&self.stores[at].reported()))
    }

    fn findings(
        self,
        series: Vec<Series>,
        relations: Vec<Relation>,
        deviation: Option<&'static str>,
    ) -> Findings {
        let machine = self.stores[0].testbed.setting.machine.clone();
        let mut deviations = DEVIATIONS.to_vec();
        deviations.push(LIMITS_DEVIATION);
        deviations.extend(deviation);
        Findings { x: Axis::linear("time", "s"), series, relations, deviations, machine }
    }
}

fn least(intervals: &[Interval<'_>]) -> f64 {
    intervals.iter().map(|one| one.done / one.offered).fold(f64::INFINITY, f64::min)
}

fn at_least(name: &str, claim: &str, least: f64, measured: f64) -> Relation {
    Relation::within(name, claim, least..=f64::INFINITY, measured)
}

fn at_most(name: &str, claim: &str, most: f64, measured: f64) -> Relation {
    Relation::within(name, claim, f64::NEG_INFINITY..=most, measured)
}

/// What the paper says of DLC beside the others; `mix` names the load.
fn dlc_is_best(compared: &Compared, mix: &str) -> Vec<Relation> {
    let ([rocks, silk, dlc], [rocks_p99, silk_p99, dlc_p99]) = (compared.steady(), compared.p99());
    let share = |store: &str| format!("{mix}{store}: share of intervals within 5 % of the offered rate");
    vec![
        at_least(&share("DLC"), "flat", 0.95, dlc),
        at_most(&share("SILK*"), "drops", 0.95, silk),
        at_most(&share("MyRocks"), "worst", 0.95, rocks),
        at_most(&format!("{mix}p99 of DLC / SILK*"), "lower", 1.0, dlc_p99 / silk_p99),
        at_most(&format!("{mix}p99 of DLC / MyRocks"), "lower", 1.0, dlc_p99 / rocks_p99),
    ]
}

/// The default transactions.
pub fn figure_6(setting: &Setting) -> Result<Findings> {
    let compared = Compared::run(setting, Mix::SYSBENCH)?;
    let mut relations = dlc_is_best(&compared, "");
    let ([rocks_p99, silk_p99, _], [rocks, _, dlc]) = (compared.p99(), compared.least());
    relations.extend([
        at_most("p99 of SILK* / MyRocks", "MyRocks is worst", 1.0, silk_p99 / rocks_p99),
        at_least("least done in ten seconds, DLC / MyRocks", "MyRocks drops", 1.0, dlc / rocks),
    ]);
    let series = compared.series();
    Ok(compared.findings(series, relations, None))
}

/// As many writes as reads, and nine times as many.
pub fn figure_7(setting: &Setting) -> Result<Findings> {
    let even = Compared::run(setting, EVEN)?;
    let writes = Compared::run(setting, WRITES)?;
    let mut relations = dlc_is_best(&even, "5:5, ");
    relations.extend(dlc_is_best(&writes, "1:9, "));
    let gain = |compared: &Compared| {
        let [rocks, _, dlc] = compared.p99();
        rocks / dlc
    };
    relations.push(at_least(
        "p99 of MyRocks / DLC, at 1:9 / at 5:5",
        "more is gained with more writes",
        1.0,
        gain(&writes) / gain(&even),
    ));
    let named = |compared: &Compared, mix: &str| {
        let mut series = compared.series();
        series.iter_mut().for_each(|one| one.name = format!("{}, {mix}", one.name));
        series
    };
    let series = [named(&even, "5:5"), named(&writes, "1:9")].concat();
    Ok(even.findings(series, relations, Some(MIX_DEVIATION)))
}

/// Nine times as many reads as writes.
pub fn figure_10(setting: &Setting) -> Result<Findings> {
    let compared = Compared::run(setting, READS)?;
    let ([_, silk, dlc], [rocks_p99, silk_p99, dlc_p99]) = (compared.steady(), compared.p99());
    let relations = vec![
        at_least("steady intervals, DLC / SILK*", "as stable", 0.97, dlc / silk),
        at_most("p99 of DLC / SILK*", "lower", 1.0, dlc_p99 / silk_p99),
        at_most("p99 of DLC / MyRocks", "lower", 1.0, dlc_p99 / rocks_p99),
    ];
    let series = compared.series();
    Ok(compared.findings(series, relations, Some(MIX_DEVIATION)))
}

/// Peaks of figure 8, and their troughs.
const LONG_TIMES: [Duration; 2] = [Duration::from_secs(550), Duration::from_secs(1100)];
const SHORT_LOW_TIME: Duration = Duration::from_secs(50);

/// After a trough its repayment may go on, in the paper's seconds.
const REPAYING: f64 = 100.0;

/// DLC, with little time to repay.
pub fn figure_8(setting: &Setting) -> Result<Findings> {
    let testbed = Testbed::new(setting);
    let peak = find_peak(&testbed, Mix::SYSBENCH)?;
    let mut series = Vec::new();
    let mut relations = Vec::new();
    let mut peaks = Vec::new();
    for high_time in LONG_TIMES {
        let rate = wave(&peak, &testbed, high_time, SHORT_LOW_TIME);
        let run = Drive { mix: Mix::SYSBENCH, rate, time: RUN_TIME };
        let driven = drive(&testbed, testbed.options("dlc-full", peak.bytes), &run)?;
        let name = format!("{:.0} s high", seconds(high_time));
        let intervals: Vec<_> = driven.intervals().into_iter().filter(|one| one.at > 600.0).collect();
        relations.push(at_least(
            &format!("{name}: share of intervals within 5 % of the offered rate"),
            "flat",
            0.95,
            steady_share(&intervals),
        ));
        let period = seconds(high_time + SHORT_LOW_TIME);
        let is_repaying = |one: &&Interval<'_>| {
            let at = one.at % period;
            at > seconds(high_time) || at <= REPAYING
        };
        let (repaying, others): (Vec<_>, Vec<_>) = intervals.iter().partition(is_repaying);
        peaks.push(driven.p99(&repaying) / driven.p99(&others));
        series.extend(driven.series(&name));
    }
    relations.push(at_least("1100 s high: p99 while repaying / otherwise", "peaks", 1.5, peaks[1]));
    relations.push(at_least(
        "the same / that of 550 s high",
        "550 s has no such peaks",
        1.0,
        peaks[1] / peaks[0],
    ));
    let deviations = DEVIATIONS.iter().copied().chain([LIMITS_DEVIATION]).collect();
    let machine = testbed.setting.machine;
    Ok(Findings { x: Axis::linear("time", "s"), series, relations, deviations, machine })
}
