//! Runs the golden cases of `tests/policy/*.txt`, and the properties that no list of cases shows.
//!
//! A file is a list of cases. Lines are copied as they are, except the indented ones: those are the results of the
//! command above them. `UPDATE=1` writes the results into the files.
//!
//! ```text
//! case <what is shown>                     starts from nothing
//! config table=2M level1=10M ...           changes the defaults of PolicyConfig::leveldb; settle=1, least=1: switches;
//!                                          window=64M: windows of fewer bytes
//! L0 e5 a-c:1M d-f:1M                      tables: level, epoch (level 0), keys and bytes
//! L1 a-c:1M cursor=c                       cursor of the level's picker: behind this key
//! L1 a-c:1M@7                              the pack of a table, unless all are in one
//! busy L1 a-c                              claim of a running job
//! pack 7 8M dead=6M holes=1M               a pack that may be rewritten, and what is dead in it or a hole
//! space noholes=1 short=1 free=4M          whether there are holes, whether space is needed, what is free
//! load debt=1G active=3M sealed=1 ...      load sample; the rest follows from the tree
//! > pick | pick L1 | range L1 a-c          plans
//! > scores | debt                          the layout's measures
//! > writer l0=7..12                        verdicts, for each value of one signal
//! > cut L3 a:1M |b b:1M ...                outputs of a compaction above level 3: entries with their bytes, fences
//! > cut L0 a:1M b:1M ...                   outputs of a flush over the newest run
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use super::*;
use crate::catalog::testing::{Dice, record, version};
use crate::catalog::{Run, Version};
use crate::format::edit::{TableRecord, TreeEdit};
use crate::options::{Files, Placer};
use crate::types::{
    Epoch, Extent, Key, KeyRange, KeyspaceId, LEVELS, PackId, Prefix, Seq, TableId, successor,
};

mod costs;
mod deletes;
mod expiry;
mod fold;
mod geared;
mod guarded;
mod hidden;
mod level0;
mod properties;
mod recency;
mod release;
mod rest;
mod retainer;
mod tiered;
mod volume;

impl PolicyConfig {
    /// LevelDB's rules at LevelDB's sizes.
    pub fn leveldb() -> Self {
        Self::leveldb_sized(2 << 20, 10 << 20)
    }

    /// LevelDB's rules for tables of `table_bytes` and a level 1 of `level1_bytes`.
    pub fn leveldb_sized(table_bytes: u64, level1_bytes: u64) -> Self {
        let grandparent_bytes_max = 10 * table_bytes;
        Self {
            layout: Layout::Leveled(LeveledConfig {
                level1_bytes,
                ratio: Some(10),
                l0_trigger: 4,
                level0: Level0Width::Fifth,
                l0_full_max: 24,
                l0_runs_max: 36,
                l0_runs_due: 54,
            }),
            picker: Picker::Cursor(PickerConfig {
                group_bytes: 0,
                group_parts: 1,
                settle: false,
                expansion_bytes_max: 25 * table_bytes,
                grandparent_bytes_max,
            }),
            cutter: Cutter::Size(SizeConfig { table_bytes, grandparent_bytes_max, cuts_flushes: false }),
            retainer: Retainer::Drop,
            pacer: Pacer::Governor(GovernorConfig {
                l0_slow: 8,
                l0_stop: 12,
                // LevelDB knows no such limit; these are RocksDB's.
                debt_slow_bytes: 64 << 30,
                debt_stop_bytes: 256 << 30,
                sealed_memtables_max: 1,
                floor_bytes_per_second: 1 << 20,
                unmeasured_bytes_per_second: 16 << 20,
            }),
            files: Files::default(),
            placer: Placer::Home,
        }
    }

    /// PTierDB's layout, picker and cutter, with these sizes. A job takes any number of bytes.
    pub fn prefixed(&mut self) {
        let Layout::Leveled(layout) = self.layout else { return };
        let (Picker::Cursor(base) | Picker::LeastOverlap(base)) = self.picker else { return };
        let Cutter::Size(size) = self.cutter else { return };
        self.layout = Layout::Prefixed(layout);
        self.picker = Picker::Components(ComponentsConfig {
            base,
            moves: true,
            access_bytes: 16 << 10,
            accesses_min: 100,
            job_bytes: u64::MAX,
        });
        self.cutter = Cutter::Prefix(SizeConfig { grandparent_bytes_max: u64::MAX, ..size });
    }

    /// The default's limits of the levels.
    fn let_limits_follow_the_tree(&mut self) {
        self.layout = Layout::Leveled(LeveledConfig {
            level1_bytes: 192 << 20,
            ratio: None,
            l0_trigger: 3,
            level0: Level0Width::Fifth,
            l0_full_max: 18,
            l0_runs_max: 36,
            l0_runs_due: 54,
        });
    }

    /// A level 0 as wide as the mix asks for, of limits that follow the tree.
    fn let_level_0_follow_the_mix(&mut self) {
        let Layout::Leveled(layout) = &mut self.layout else { panic!("a leveled tree") };
        layout.level0 = Level0Width::Mix { share: LEVEL0_SHARE_MAX };
    }

    /// The limits of the picker, whichever it is.
    fn picker_mut(&mut self) -> &mut PickerConfig {
        match &mut self.picker {
            Picker::Cursor(config)
            | Picker::LeastOverlap(config)
            | Picker::Levels(config)
            | Picker::Drain(config)
            | Picker::Guards(config, _)
            | Picker::RatioWindow(WindowConfig { victims: config, .. }) => config,
            Picker::Components(components) => &mut components.base,
        }
    }
}

#[test]
fn golden_cases_come_out_as_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/policy");
    let mut cases = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let written = std::fs::read_to_string(&file).unwrap();
        let computed = run_file(&written);
        cases += written.lines().filter(|line| line.starts_with("case ")).count();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &computed).unwrap();
        } else {
            assert_eq!(written, computed, "{}: UPDATE=1 rewrites it", file.display());
        }
    }
    assert!(cases >= 20, "only {cases} cases found");
}

fn run_file(text: &str) -> String {
    let mut case = Case::default();
    let mut result = String::new();
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        writeln!(result, "{line}").unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] | ["#", ..] => {}
            ["case", ..] => case = Case::default(),
            [">", command, ref arguments @ ..] => {
                for output in case.run(command, arguments).lines() {
                    writeln!(result, "  {output}").unwrap();
                }
            }
            ["config", ref settings @ ..] => settings.iter().for_each(|setting| case.configure(setting)),
            ["load", ref settings @ ..] => settings.iter().for_each(|setting| case.load(setting)),
            ["space", ref settings @ ..] => {
                case.space.extend(settings.iter().map(|word| parse_setting(word)))
            }
            ["pack", pack, length, ref settings @ ..] => case.add_pack(pack, length, settings),
            ["prefix", length] => case.prefix = length.parse().unwrap(),
            ["searched", ref ids @ ..] => {
                case.searched.extend(ids.iter().map(|id| id.parse::<u64>().unwrap()))
            }
            ["busy", level, range] => case.busy.push((parse_level(level), parse_range(range))),
            [level, ref tables @ ..] => case.add_level(parse_level(level), tables),
        }
    }
    result
}

/// A tree, a load and a configuration under construction.
struct Case {
    edit: TreeEdit,
    busy: Vec<(u8, KeyRange)>,
    load: BTreeMap<String, u64>,
    packs: Vec<PackView>,
    space: BTreeMap<String, u64>,
    config: PolicyConfig,
    /// Length of prefixes; 0 for no rule.
    prefix: u16,
    searched: Vec<u64>,
}

impl Default for Case {
    fn default() -> Self {
        let config = PolicyConfig::leveldb();
        Self {
            edit: TreeEdit::default(),
            busy: Vec::new(),
            load: BTreeMap::new(),
            packs: Vec::new(),
            space: BTreeMap::new(),
            config,
            prefix: 0,
            searched: Vec::new(),
        }
    }
}

impl Case {
    fn add_level(&mut self, level: u8, words: &[&str]) {
        let mut epoch = 1;
        for word in words {
            if let Some(cursor) = word.strip_prefix("cursor=") {
                self.edit.cursors.push((level, successor(cursor.as_bytes())));
            } else if let Some((range, bytes)) = word.split_once(':') {
                let id = self.edit.add.len() as u64 + 1;
                let (bytes, pack) = bytes.split_once('@').unwrap_or((bytes, ""));
                let mut table = table(id, epoch, parse_range(range), parse_bytes(bytes));
                if let Ok(pack) = pack.parse() {
                    (table.extent.pack, table.extent.offset) = (PackId(pack), id << 40);
                }
                self.edit.add.push((level, table));
            } else {
                epoch = word.strip_prefix('e').expect("e<epoch>").parse().unwrap();
            }
        }
    }

    fn configure(&mut self, setting: &str) {
        let (name, value) = setting.split_once('=').unwrap();
        let value = parse_bytes(value);
        let mut picker = *self.config.picker_mut();
        let PolicyConfig { layout, cutter, pacer, .. } = &mut self.config;
        let (Layout::Leveled(layout) | Layout::Prefixed(layout)) = layout else {
            panic!("guards have no such settings")
        };
        let (Cutter::Size(cutter) | Cutter::Prefix(cutter)) = cutter else {
            panic!("guards have no such settings")
        };
        let Pacer::Governor(pacer) = pacer else { panic!("only a governor has such settings") };
        match name {
            "level1" => layout.level1_bytes = value,
            "ratio" => layout.ratio = Some(value).filter(|ratio| *ratio > 0),
            "trigger" => (layout.l0_trigger, layout.l0_full_max, layout.l0_runs_max) = (value, value, value),
            "table" => cutter.table_bytes = value,
            "group" => picker.group_bytes = value,
            "parts" => picker.group_parts = value,
            "settle" => picker.settle = value > 0,
            "least" => self.config.picker = Picker::LeastOverlap(picker),
            "window" => {
                let config = WindowConfig { victims: picker, bytes_max: value, oldest_runs: 32 };
                self.config.picker = Picker::RatioWindow(config);
            }
            "oldest" => {
                let Picker::RatioWindow(config) = &mut self.config.picker else { panic!("only of windows") };
                config.oldest_runs = value;
            }
            "expansion" => picker.expansion_bytes_max = value,
            "grandparents" => {
                picker.grandparent_bytes_max = value;
                cutter.grandparent_bytes_max = value;
            }
            "prefixed" => return self.config.prefixed(),
            "moves" | "job" | "access" => {
                let Picker::Components(components) = &mut self.config.picker else { panic!("of components") };
                match name {
                    "moves" => components.moves = value > 0,
                    "job" => components.job_bytes = value,
                    _ => components.access_bytes = value,
                }
                return;
            }
            "debt_slow" => pacer.debt_slow_bytes = value,
            "debt_stop" => pacer.debt_stop_bytes = value,
            "sealed_max" => pacer.sealed_memtables_max = value,
            _ => panic!("no setting {name}"),
        }
        *self.config.picker_mut() = picker;
    }

    fn load(&mut self, setting: &str) {
        self.load.extend([parse_setting(setting)]);
    }

    fn add_pack(&mut self, pack: &str, length: &str, settings: &[&str]) {
        let settings: BTreeMap<String, u64> = settings.iter().map(|word| parse_setting(word)).collect();
        let value = |name: &str| settings.get(name).copied().unwrap_or(0);
        self.packs.push(PackView {
            pack: PackId(pack.parse().unwrap()),
            length: parse_bytes(length),
            dead_bytes: value("dead"),
            hole_bytes: value("holes"),
        });
    }

    fn space(&self, version: &Version) -> SpaceView {
        let value = |name: &str| self.space.get(name).copied().unwrap_or(0);
        let totals = SpaceTotals {
            no_holes: value("noholes") > 0,
            is_short: value("short") > 0,
            live_bytes: version.tables().map(|(_, table)| table.bytes()).sum(),
            dead_bytes: self.packs.iter().map(|pack| pack.dead_bytes).sum(),
            sparse_packs: self.packs.iter().filter(|pack| pack.is_sparse()).count() as u64,
        };
        let packs = if totals.is_due() { self.packs.clone() } else { Vec::new() };
        let free_bytes = self.space.get("free").copied().unwrap_or(u64::MAX);
        SpaceView { totals, packs, free_bytes, reads: ReadView::default() }
    }

    fn version(&self) -> Version {
        let version = Version::empty().apply(&self.edit, &mut |_| crate::catalog::Lease::none()).unwrap();
        crate::catalog::check_version(&version).unwrap();
        version
    }

    fn run(&self, command: &str, arguments: &[&str]) -> String {
        let version = self.version();
        let mut shape = self.config.layout.measure(&version);
        shape.prefix = Some(self.prefix).filter(|length| *length > 0).map(Prefix::Fixed);
        for (place, id) in shape.searched.iter_mut().zip(&self.searched) {
            *place = Some(TableId(*id));
        }
        let mut busy = Claims::default();
        self.busy.iter().for_each(|(level, range)| busy.claim(&claim_of(*level, range.clone())));
        let view = TreeView::of(&version, &busy, &shape);
        let show = |plan: Option<Plan>| plan.map_or("nothing".into(), |plan| show_plan(&version, &plan));
        match (command, arguments) {
            ("pick", []) => show(next_plan(&[view], &self.space(&version), &self.sample(), &self.config)),
            ("within", []) => show(self.config.picker.pick_within(&view)),
            ("pick", [level]) => show(self.config.picker.pick(&view, parse_level(level))),
            ("range", [level, range @ ..]) => {
                let range = range.first().map(|range| parse_range(range));
                match self.config.picker.pick_range(&view, parse_level(level), range.as_ref()) {
                    RangePick::Plan(plan) => show_plan(&version, &plan),
                    other => format!("{other:?}").to_lowercase(),
                }
            }
            ("scores", []) => {
                let scores = (0..LEVELS).zip(shape.scores).filter(|(_, score)| *score > 0.0);
                let shown: Vec<_> = scores.map(|(level, score)| format!("L{level} {score:.2}")).collect();
                if shown.is_empty() { "all 0".into() } else { shown.join("  ") }
            }
            ("price", []) => {
                self.config.layout.price_of_level0(&version, &Costs::TUNED).map_or("never".into(), show_bytes)
            }
            ("idle", []) => {
                let mut windows = self.config.layout.idle_intra_l0(&version, &Costs::TUNED).into_iter();
                show(windows.find_map(|window| self.config.picker.intra_l0(&view, &window, Evenness::Even)))
            }
            ("intra_l0", [read_debt]) => {
                let intra_l0 =
                    self.config.layout.intra_l0(&version, parse_bytes(read_debt), &Costs::TUNED).into_iter();
                let shown = intra_l0.map(|(window, price)| {
                    format!(
                        "runs {window:?} {}: {}",
                        show_bytes(price),
                        show(self.config.picker.intra_l0(&view, &window, Evenness::Any))
                    )
                });
                let shown: Vec<_> = shown.collect();
                if shown.is_empty() { "none".into() } else { shown.join("\n") }
            }
            ("debt", []) => show_bytes(shape.debt_bytes),
            ("writer", [sweep]) => self.writer(sweep),
            ("cut", [level, entries @ ..]) => {
                let run = version.level(parse_level(level)).runs.first().cloned().unwrap_or_default();
                cut((&self.config.cutter, shape.prefix), parse_level(level), run, entries)
            }
            _ => panic!("no command {command} {arguments:?}"),
        }
    }

    fn sample(&self) -> LoadState {
        let value = |name: &str| self.load.get(name).copied().unwrap_or(0);
        LoadState {
            active_bytes: value("active"),
            active_bytes_max: 4 << 20,
            sealed_memtables: value("sealed"),
            l0_runs: value("l0"),
            debt_bytes: value("debt"),
            flush_bytes_per_second: value("flush"),
            compaction_bytes_per_second: value("compact"),
            ..LoadState::default()
        }
    }

    /// `name=from..to` or `name=a,b,c`: the verdict for each value.
    fn writer(&self, sweep: &str) -> String {
        let (name, values) = sweep.split_once('=').unwrap();
        let values: Vec<String> = match values.split_once("..") {
            Some((from, to)) => {
                (parse_bytes(from)..=parse_bytes(to)).map(|value| value.to_string()).collect()
            }
            None => values.split(',').map(str::to_string).collect(),
        };
        let mut lines = String::new();
        for value in values {
            let mut load = self.load.clone();
            load.insert(name.to_string(), parse_bytes(&value));
            let config = self.config;
            let case = Self { load, edit: self.edit.clone(), config, ..Self::default() };
            let verdict = match self.config.pacer.writer(&case.sample()) {
                WriterVerdict::Go => "go".to_string(),
                WriterVerdict::Delay { slowdown: Slowdown::BytesPerSecond(rate), reason } => {
                    format!("{}/s, {reason:?}", show_bytes(rate))
                }
                WriterVerdict::Delay { slowdown: Slowdown::PerWrite(time), reason } => {
                    format!("{time:?} a write, {reason:?}")
                }
                WriterVerdict::Stop { reason } => format!("stop, {reason:?}"),
            };
            writeln!(lines, "{name}={value}: {verdict}").unwrap();
        }
        lines
    }
}

/// The outputs of a compaction, or of a flush over a run of level 0: their keys, a line each.
fn cut((cutter, rule): (&Cutter, Option<Prefix>), level: u8, beside: Run, entries: &[&str]) -> String {
    let fences: Vec<Key> =
        entries.iter().filter_map(|entry| Some(entry.strip_prefix('|')?.as_bytes().into())).collect();
    let mut state =
        if level == 0 { cutter.start_like(beside, &fences) } else { cutter.start(beside, &fences) };
    let sizes = entries.iter().filter_map(|entry| Some(parse_bytes(entry.split_once(':')?.1)));
    state = state.with_prefixes(rule, sizes.sum());
    let (mut lines, mut output_bytes) = (String::new(), 0);
    for (key, bytes) in entries.iter().filter_map(|entry| entry.split_once(':')) {
        if state.cut(&CutView { output_bytes, next_key: key.as_bytes() }) && output_bytes > 0 {
            writeln!(lines, "= {}", show_bytes(output_bytes)).unwrap();
            output_bytes = 0;
        }
        write!(lines, "{key} ").unwrap();
        output_bytes += parse_bytes(bytes);
    }
    lines + "= " + &show_bytes(output_bytes)
}

/// A table whose sequence numbers follow from its epoch, in a pack of its own.
fn table(id: u64, epoch: u64, range: KeyRange, bytes: u64) -> TableRecord {
    let base = record(id, "", "");
    let extent = Extent { pack: PackId(id), length: bytes, ..base.extent };
    let (min_seq, max_seq) = (Seq(epoch * 10), Seq(epoch * 10 + 9));
    TableRecord { extent, range, min_seq, max_seq, epoch: Epoch(epoch), ..base }
}

/// A plan that claims nothing but `range` of `level`.
fn claim_of(level: u8, range: KeyRange) -> Plan {
    Plan {
        keyspace: KeyspaceId(0),
        kind: PlanKind::Compact,
        source: level,
        target: level,
        inputs: Vec::new(),
        moves: Vec::new(),
        stacks: false,
        age: OutputAge::Newest,
        fences: Vec::new(),
        claims: vec![range.clone()],
        range,
        bytes: 0,
        cursor: None,
        reason: Reason::Manual,
    }
}

/// The plan with ranges in place of ids, so that it can be read beside the tree.
fn show_plan(version: &Version, plan: &Plan) -> String {
    let range_of = |id| {
        let range = version.table(id).unwrap().1.range.to_string();
        range.trim_matches(['[', ']']).replace("..", "-")
    };
    let of_level = |level| {
        let inputs = plan.inputs.iter().filter(move |input| input.level == level);
        inputs.map(|input| range_of(input.table)).collect::<Vec<_>>().join(" ")
    };
    let moves = plan.moves.iter().map(|id| range_of(*id)).collect::<Vec<_>>().join(" ");
    let mut what = match plan.kind {
        PlanKind::Compact if plan.source == plan.target => format!("[{}]", of_level(plan.source)),
        PlanKind::Compact => format!("[{}] with [{}]", of_level(plan.source), of_level(plan.target)),
        PlanKind::Move => format!("[{moves}]"),
        PlanKind::Drop | PlanKind::Rewrite | PlanKind::Relocate(_) => format!("[{}]", of_level(plan.source)),
    };
    if plan.kind == PlanKind::Compact && !plan.moves.is_empty() {
        write!(what, " move [{moves}]").unwrap();
    }
    for fence in &plan.fences {
        write!(what, " |{}", fence.escape_ascii()).unwrap();
    }
    if plan.claims != [plan.range.clone()] {
        let claims: Vec<_> = plan.claims.iter().map(ToString::to_string).collect();
        write!(what, " claims {}", claims.join(" ")).unwrap();
    }
    let kind = format!("{:?}", plan.kind).to_lowercase();
    let behind = |key: &Key| key.strip_suffix(&[0]).unwrap_or(key).escape_ascii().to_string();
    let cursor = plan.cursor.as_ref().map_or(String::new(), |key| format!(" cursor={}", behind(key)));
    let (source, target, reason) = (plan.source, plan.target, plan.reason);
    format!("{kind} L{source}->L{target} {what} {}{cursor} ({reason})", show_bytes(plan.bytes))
}

fn parse_level(word: &str) -> u8 {
    word.strip_prefix('L').expect("L<level>").parse().unwrap()
}

/// `name=bytes`.
fn parse_setting(word: &str) -> (String, u64) {
    let (name, value) = word.split_once('=').unwrap();
    (name.to_string(), parse_bytes(value))
}

fn parse_range(word: &str) -> KeyRange {
    let (from, to) = word.split_once('-').unwrap();
    KeyRange::new(from.as_bytes(), to.as_bytes())
}

fn parse_bytes(word: &str) -> u64 {
    let units = [('K', 1u64 << 10), ('M', 1 << 20), ('G', 1 << 30)];
    match units.iter().find_map(|(unit, bytes)| Some((word.strip_suffix(*unit)?, *bytes))) {
        Some((number, unit)) => (number.parse::<f64>().unwrap() * unit as f64) as u64,
        None => word.parse().unwrap(),
    }
}

fn show_bytes(bytes: u64) -> String {
    let units = [(1u64 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes.is_multiple_of(*unit) => format!("{}{name}", bytes / unit),
        Some((unit, name)) => format!("{:.1}{name}", bytes as f64 / *unit as f64),
        None => bytes.to_string(),
    }
}

/// A plan of no tables.
pub fn any_plan() -> Plan {
    let range = parse_range("a-z");
    Plan {
        keyspace: KeyspaceId(0),
        kind: PlanKind::Compact,
        source: 1,
        target: 2,
        inputs: Vec::new(),
        moves: Vec::new(),
        stacks: false,
        age: OutputAge::Newest,
        fences: Vec::new(),
        claims: vec![range.clone()],
        range,
        bytes: 0,
        cursor: None,
        reason: Reason::LevelBytes,
    }
}

#[test]
fn a_plan_shows_itself_in_one_line() {
    let tree = version(vec![
        (1, table(1, 1, parse_range("a-c"), 1 << 20)),
        (2, table(2, 1, parse_range("b-d"), 2 << 20)),
        (2, table(3, 1, parse_range("e-f"), 3)),
    ]);
    let (busy, shape) = Default::default();
    let view = TreeView {
        keyspace: KeyspaceId(4),
        version: &tree,
        busy: &busy,
        shape: &shape,
        pins: &[],
        deletes: &[],
        collection: None,
    };
    let picker = PolicyConfig::leveldb().picker;
    let compaction = picker.pick(&view, 1).unwrap();
    assert_eq!(compaction.to_string(), "compact k4 L1->L2 [a..d] 3145728B L1:t1 L2:t2 (level bytes)");
    let bottom = picker.pick(&view, 2).unwrap();
    assert_eq!(bottom.to_string(), "move k4 L2->L3 [b..d] 2097152B move:t2 (level bytes)");
    assert!(busy.is_empty());
}
