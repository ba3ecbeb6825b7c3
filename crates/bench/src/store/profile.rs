//! Profiles by name: options of a profile, with single parts of its tree set otherwise.

use std::time::Duration;

use terrace::tree::{
    Adaptive, Bandwidth, Buffer, Burst, Caching, Components, Cutter, Descriptors, Dlc, Drain, Flushes, Gear,
    Geared, Governor, Group, Guarded, Layout, Leveled, Levels, LoadEstimator, Pacer, PackLayout, Peak,
    Picker, Placer, Prefixed, RatioWindow, Retainer, Silk, SoftSleep, Steady, TableSize, Tiered, Unit,
    ValueOrder,
};
use terrace::{Options, TreeOptions};

use crate::Result;

/// The options of a profile, with those parts of its tree set otherwise that are named behind it, one after the other.
///
/// A part is a decision (`layout`, which is `adaptive`, `leveled`, `tiered`, `prefixed`, `guarded` or `geared`, each with its defaults; `retainer`, which is `drop` or `buffer`; `caching`, which is `adaptive`, `on-read`, `tables`, `blocks` or `warm-up`; `values`, which lie by `key` or `log`; `picker`, which is `cursor`,
/// `least-overlap` or `ratio-window`, each with the group that there is, `levels`, `components`, `guards` or `drain`; `cutter`, which is `size`, `prefix` or `guards`, each
/// with the tables that there are), or a parameter by the name of its field in [`terrace::tree`]; those of a group
/// are `group_bytes`, `group_parts` and `settle`; `pacer` is `steady`, `governor`, `soft-sleep`, `silk`, `dlc` or `gear`, each with the limits for writers that
/// there are; `bandwidth` is that of the device, in bytes per second; `estimator` is `operations`, `blocks`, `composite` or
/// `GET_BYTES+SCAN_BYTES`; `peak` is `delay-full` or `delay-part`; `burst` is `never`, a number of runs, or `RUNSxPARTS`. Sizes are in bytes, or with `K`, `M` or `G` behind the number in
/// units of 2^10, 2^20 or 2^30; switches are `on` or `off`; `flushes` are `cut` or `whole`; `descriptors` are `per-pack` or `per-table`;
/// `placer` is `home`, `modN`, `slowPERCENT`, `levelN` or `dynamic`, with `/job` or `/table` behind it, or `levelN/adapt`; `packs` are `one-table`, or the size beyond which a compaction goes on in a new file.
///
/// # Errors
/// An unknown profile or part, a parameter of a variant that the profile does not have, or a value out of its range.
///
/// ```
/// use terrace::tree::{Group, Picker};
/// use terrace_bench::store::options;
///
/// let unsettled = options("default:settle=off:group_bytes=64M")?;
/// let group = Group { bytes: 64 << 20, settle: false, ..Group::default() };
/// assert_eq!(unsettled.tree.picker, Picker::Cursor(group));
/// # Ok::<(), terrace_bench::Error>(())
/// ```
pub fn options(text: &str) -> Result<Options> {
    let mut words = text.split(':');
    let name = words.next().unwrap_or_default();
    let mut options = Options::profile(name)
        .ok_or_else(|| format!("unknown profile {name:?}: there are {}", Options::profiles().join(", ")))?;
    for word in words {
        let (part, value) = word.split_once('=').ok_or_else(|| format!("{word:?} is not PART=VALUE"))?;
        set(&mut options.tree, part, value).map_err(|error| format!("{word}: {error}"))?;
    }
    options.validate()?;
    Ok(options)
}

fn set(tree: &mut TreeOptions, part: &str, value: &str) -> Result<()> {
    match part {
        "layout" => tree.layout = layout(value)?,
        "cutter" => tree.cutter = cutter(value, *tables(tree)?)?,
        "l0_bytes" => adaptive(tree)?.l0_bytes = size(value)?,
        "l0_runs" => adaptive(tree)?.l0_runs = value.parse()?,
        "level1_bytes" => *level_limits(tree)?.0 = size(value)?,
        "ratio" => *level_limits(tree)?.1 = value.parse()?,
        "l0_trigger" => *l0_trigger(tree)? = value.parse()?,
        "runs" => tiered(tree)?.runs = value.parse()?,
        "last_runs" => tiered(tree)?.last_runs = value.parse()?,
        "picker" => tree.picker = picker(value, tree)?,
        "part_bytes" => levels(tree)?.part_bytes = size(value)?,
        "unit_bytes" => drain(tree)?.unit_bytes = size(value)?,
        "caching" => tree.caching = caching(value)?,
        "values" => tree.value_order = value_order(value)?,
        "retainer" => tree.retainer = retainer(value)?,
        "cached_percent" => buffer(tree)?.cached_percent = value.parse()?,
        "period_ms" => buffer(tree)?.period = Duration::from_millis(value.parse()?),
        "share_percent" => buffer(tree)?.share_percent = value.parse()?,
        "top_bits" => guarded(tree)?.top_bits = value.parse()?,
        "bits_step" => guarded(tree)?.bits_step = value.parse()?,
        "runs_max" => guarded(tree)?.runs_max = value.parse()?,
        "guard_bytes" => guarded(tree)?.guard_bytes = size(value)?,
        "group_bytes" => group(tree)?.bytes = size(value)?,
        "group_parts" => group(tree)?.parts = value.parse()?,
        "settle" => group(tree)?.settle = is_on(value)?,
        "window_tables" => window(tree)?.window_tables = value.parse()?,
        "oldest_runs" => window(tree)?.oldest_runs = value.parse()?,
        "moves" => components(tree)?.moves = is_on(value)?,
        "access_bytes" => components(tree)?.access_bytes = size(value)?,
        "accesses_min" => components(tree)?.accesses_min = value.parse()?,
        "job_bytes" => components(tree)?.job_bytes = size(value)?,
        "table_bytes" => tables(tree)?.table_bytes = size(value)?,
        "flushes" => tables(tree)?.flushes = flushes(value)?,
        "l0_slow" => governor(tree)?.l0_slow = value.parse()?,
        "l0_stop" => governor(tree)?.l0_stop = value.parse()?,
        "debt_slow_bytes" => governor(tree)?.debt_slow_bytes = size(value)?,
        "debt_stop_bytes" => governor(tree)?.debt_stop_bytes = size(value)?,
        "pacer" => tree.pacer = pacer(value, tree)?,
        "l0_free" => soft_sleep(tree)?.l0_free = value.parse()?,
        "nanos_per_run" => soft_sleep(tree)?.nanos_per_run = value.parse()?,
        "bandwidth" => bandwidth(tree)?.device = Some(size(value)?),
        "floor_percent" => bandwidth(tree)?.floor_percent = value.parse()?,
        "estimator" => *load(tree)?.0 = estimator(value)?,
        "interval_ms" => *load(tree)?.1 = Duration::from_millis(value.parse()?),
        "pause_percent" => silk(tree)?.pause_percent = value.parse()?,
        "high_percent" => dlc(tree)?.high_percent = value.parse()?,
        "low_percent" => dlc(tree)?.low_percent = value.parse()?,
        "softness" => dlc(tree)?.softness = value.parse()?,
        "high_softness" => dlc(tree)?.high_softness = value.parse()?,
        "peak" => dlc(tree)?.peak = peak(value)?,
        "burst" => dlc(tree)?.burst = burst(value)?,
        "spring_percent" => gear(tree)?.spring_percent = value.parse()?,
        "spring_ms" => gear(tree)?.spring = Duration::from_millis(value.parse()?),
        "yield_disk" => steady(tree)?.yield_disk = is_on(value)?,
        "yield_processor" => steady(tree)?.yield_processor = is_on(value)?,
        "packs" if value == "one-table" => tree.files.packs = PackLayout::OneTable,
        "packs" => tree.files.packs = PackLayout::Many { bytes_max: size(value)? },
        "placer" => tree.placer = placer(value)?,
        "descriptors" => tree.files.descriptors = descriptors(value)?,
        "block_bytes" => tree.block_bytes = size(value)?.try_into()?,
        "partitioned_bytes_min" => tree.partitioned_bytes_min = size(value)?,
        _ => return Err("no such part; parts are named as the fields in terrace::tree are".into()),
    }
    Ok(())
}

fn adaptive(tree: &mut TreeOptions) -> Result<&mut Adaptive> {
    match &mut tree.layout {
        Layout::Adaptive(adaptive) | Layout::Auto(adaptive) => Ok(adaptive),
        _ => Err("only with layout=adaptive or layout=auto".into()),
    }
}

/// The bytes of level 1, and the ratio.
fn level_limits(tree: &mut TreeOptions) -> Result<(&mut u64, &mut u32)> {
    match &mut tree.layout {
        Layout::Leveled(Leveled { level1_bytes, ratio, .. })
        | Layout::Tiered(Tiered { level1_bytes, ratio, .. })
        | Layout::Geared(Geared { level1_bytes, ratio, .. })
        | Layout::Prefixed(Prefixed { level1_bytes, ratio, .. }) => Ok((level1_bytes, ratio)),
        _ => Err("only with layout=leveled, layout=tiered, layout=prefixed or layout=geared".into()),
    }
}

fn tiered(tree: &mut TreeOptions) -> Result<&mut Tiered> {
    match &mut tree.layout {
        Layout::Tiered(tiered) => Ok(tiered),
        _ => Err("only with layout=tiered".into()),
    }
}

fn levels(tree: &mut TreeOptions) -> Result<&mut Levels> {
    match &mut tree.picker {
        Picker::Levels(levels) => Ok(levels),
        _ => Err("only with picker=levels".into()),
    }
}

fn drain(tree: &mut TreeOptions) -> Result<&mut Drain> {
    match &mut tree.picker {
        Picker::Drain(drain) => Ok(drain),
        _ => Err("only with picker=drain".into()),
    }
}

fn buffer(tree: &mut TreeOptions) -> Result<&mut Buffer> {
    match &mut tree.retainer {
        Retainer::Buffer(buffer) => Ok(buffer),
        _ => Err("only with retainer=buffer".into()),
    }
}

fn value_order(value: &str) -> Result<ValueOrder> {
    match value {
        "key" => Ok(ValueOrder::Key),
        "log" => Ok(ValueOrder::Log),
        _ => Err("values lie by key or log".into()),
    }
}

fn caching(value: &str) -> Result<Caching> {
    match value {
        "adaptive" => Ok(Caching::Adaptive),
        "on-read" => Ok(Caching::OnRead),
        "tables" => Ok(Caching::Tables),
        "blocks" => Ok(Caching::Blocks),
        "warm-up" => Ok(Caching::WarmUp),
        _ => Err("caching is adaptive, on-read, tables, blocks or warm-up".into()),
    }
}

fn retainer(value: &str) -> Result<Retainer> {
    match value {
        "drop" => Ok(Retainer::Drop),
        "buffer" => Ok(Retainer::Buffer(Buffer::default())),
        _ => Err("a retainer is drop or buffer".into()),
    }
}

fn guarded(tree: &mut TreeOptions) -> Result<&mut Guarded> {
    match &mut tree.layout {
        Layout::Guarded(guarded) => Ok(guarded),
        _ => Err("only with layout=guarded".into()),
    }
}

fn l0_trigger(tree: &mut TreeOptions) -> Result<&mut usize> {
    match &mut tree.layout {
        Layout::Leveled(leveled) => Ok(&mut leveled.l0_trigger),
        Layout::Tiered(tiered) => Ok(&mut tiered.l0_trigger),
        Layout::Geared(geared) => Ok(&mut geared.l0_trigger),
        Layout::Guarded(guarded) => Ok(&mut guarded.l0_trigger),
        Layout::Prefixed(prefixed) => Ok(&mut prefixed.l0_trigger),
        _ => Err("not with layout=adaptive".into()),
    }
}

fn components(tree: &mut TreeOptions) -> Result<&mut Components> {
    match &mut tree.picker {
        Picker::Components(components) => Ok(components),
        _ => Err("only with picker=components".into()),
    }
}

fn group(tree: &mut TreeOptions) -> Result<&mut Group> {
    match &mut tree.picker {
        Picker::Cursor(group)
        | Picker::LeastOverlap(group)
        | Picker::RatioWindow(RatioWindow { group, .. }) => Ok(group),
        _ => Err("only with picker=cursor, picker=least-overlap or picker=ratio-window".into()),
    }
}

fn window(tree: &mut TreeOptions) -> Result<&mut RatioWindow> {
    match &mut tree.picker {
        Picker::RatioWindow(window) => Ok(window),
        _ => Err("only with picker=ratio-window".into()),
    }
}

fn tables(tree: &mut TreeOptions) -> Result<&mut TableSize> {
    match &mut tree.cutter {
        Cutter::Size(size) | Cutter::Guards(size) | Cutter::Prefix(size) => Ok(size),
        _ => Err("only where tables are cut by size".into()),
    }
}

fn governor(tree: &mut TreeOptions) -> Result<&mut Governor> {
    match &mut tree.pacer {
        Pacer::Governor(limits)
        | Pacer::Steady(Steady { limits, .. })
        | Pacer::Silk(Silk { limits, .. })
        | Pacer::Dlc(Dlc { limits, .. })
        | Pacer::Gear(Gear { limits, .. }) => Ok(limits),
        _ => Err("not with pacer=soft-sleep".into()),
    }
}

fn steady(tree: &mut TreeOptions) -> Result<&mut Steady> {
    match &mut tree.pacer {
        Pacer::Steady(steady) => Ok(steady),
        _ => Err("only with pacer=steady".into()),
    }
}

fn soft_sleep(tree: &mut TreeOptions) -> Result<&mut SoftSleep> {
    match &mut tree.pacer {
        Pacer::SoftSleep(soft) => Ok(soft),
        _ => Err("only with pacer=soft-sleep".into()),
    }
}

fn silk(tree: &mut TreeOptions) -> Result<&mut Silk> {
    match &mut tree.pacer {
        Pacer::Silk(silk) => Ok(silk),
        _ => Err("only with pacer=silk".into()),
    }
}

fn dlc(tree: &mut TreeOptions) -> Result<&mut Dlc> {
    match &mut tree.pacer {
        Pacer::Dlc(dlc) => Ok(dlc),
        _ => Err("only with pacer=dlc".into()),
    }
}

fn gear(tree: &mut TreeOptions) -> Result<&mut Gear> {
    match &mut tree.pacer {
        Pacer::Gear(gear) => Ok(gear),
        _ => Err("only with pacer=gear".into()),
    }
}

fn bandwidth(tree: &mut TreeOptions) -> Result<&mut Bandwidth> {
    match &mut tree.pacer {
        Pacer::Silk(Silk { bandwidth, .. }) | Pacer::Dlc(Dlc { bandwidth, .. }) => Ok(bandwidth),
        _ => Err("only with pacer=silk or pacer=dlc".into()),
    }
}

/// How a pacer tells the load, and how often.
fn load(tree: &mut TreeOptions) -> Result<(&mut LoadEstimator, &mut Duration)> {
    match &mut tree.pacer {
        Pacer::Silk(Silk { estimator, interval, .. }) | Pacer::Dlc(Dlc { estimator, interval, .. }) => {
            Ok((estimator, interval))
        }
        _ => Err("only with pacer=silk or pacer=dlc".into()),
    }
}

/// The pacer of that name; it keeps the limits of the one that there is.
fn pacer(value: &str, tree: &mut TreeOptions) -> Result<Pacer> {
    let limits = governor(tree).map_or_else(|_| Governor::default(), |limits| *limits);
    match value {
        "steady" => Ok(Pacer::Steady(Steady { limits, ..Steady::default() })),
        "governor" => Ok(Pacer::Governor(limits)),
        "soft-sleep" => Ok(Pacer::SoftSleep(SoftSleep::default())),
        "silk" => Ok(Pacer::Silk(Silk { limits, ..Silk::default() })),
        "dlc" => Ok(Pacer::Dlc(Dlc { limits, ..Dlc::default() })),
        "gear" => Ok(Pacer::Gear(Gear { limits, ..Gear::default() })),
        _ => Err("a pacer is steady, governor, soft-sleep, silk, dlc or gear".into()),
    }
}

/// `operations`, `blocks`, `composite`, or the bytes for a lookup and for a seek.
fn estimator(value: &str) -> Result<LoadEstimator> {
    match value {
        "operations" => Ok(LoadEstimator::Operations),
        "blocks" => Ok(LoadEstimator::Blocks),
        "composite" => Ok(LoadEstimator::Composite),
        _ => {
            let (gets, scans) = value
                .split_once('+')
                .ok_or("an estimator is operations, blocks, composite, or GET_BYTES+SCAN_BYTES")?;
            Ok(LoadEstimator::Weights { get_bytes: size(gets)?, scan_bytes: size(scans)? })
        }
    }
}

fn peak(value: &str) -> Result<Peak> {
    match value {
        "delay-full" => Ok(Peak::DelayFull),
        "delay-part" => Ok(Peak::DelayPart),
        _ => Err("a peak is delay-full or delay-part".into()),
    }
}

/// `never`, a number of runs, or numbers of runs and of parts.
fn burst(value: &str) -> Result<Burst> {
    match value.split_once('x') {
        None if value == "never" => Ok(Burst::Never),
        None => Ok(Burst::Full { runs: value.parse()? }),
        Some((runs, parts)) => Ok(Burst::Part { runs: runs.parse()?, parts: parts.parse()? }),
    }
}

fn placer(value: &str) -> Result<Placer> {
    let (name, unit) = match value.split_once('/') {
        Some((name, "job")) => (name, Unit::Job),
        Some((name, "table")) => (name, Unit::Table),
        Some((name, "adapt")) if name.starts_with("level") => (name, Unit::default()),
        Some((_, unit)) => return Err(format!("{unit:?} is not job or table").into()),
        None => (value, Unit::default()),
    };
    let adapt = value.ends_with("/adapt");
    let number = |kind: &str| name.strip_prefix(kind).map(str::parse::<u32>);
    Ok(match name {
        "home" => Placer::Home,
        "dynamic" => Placer::Dynamic { unit },
        "heat" => Placer::Heat { unit },
        _ => match (number("mod"), number("slow"), number("level")) {
            (Some(n), _, _) => Placer::Mod { n: n?, unit },
            (_, Some(percent), _) => Placer::Weighted { slow_percent: percent?.try_into()?, unit },
            (_, _, Some(upto)) => Placer::Level { upto: upto?.try_into()?, adapt },
            _ => return Err("not home, dynamic, heat, modN, slowPERCENT or levelN".into()),
        },
    })
}

fn layout(value: &str) -> Result<Layout> {
    match value {
        "adaptive" => Ok(Layout::Adaptive(Adaptive::default())),
        "auto" => Ok(Layout::Auto(Adaptive::default())),
        "leveled" => Ok(Layout::Leveled(Leveled::default())),
        "tiered" => Ok(Layout::Tiered(Tiered::default())),
        "prefixed" => Ok(Layout::Prefixed(Prefixed::default())),
        "guarded" => Ok(Layout::Guarded(Guarded::default())),
        "geared" => Ok(Layout::Geared(Geared::default())),
        _ => Err("a layout is adaptive, auto, leveled, tiered, prefixed, guarded or geared".into()),
    }
}

/// The picker of that name; it keeps the group that there is.
fn picker(value: &str, tree: &mut TreeOptions) -> Result<Picker> {
    let group = group(tree).map_or_else(|_| Group::default(), |group| *group);
    match value {
        "cursor" => Ok(Picker::Cursor(group)),
        "least-overlap" => Ok(Picker::LeastOverlap(group)),
        "ratio-window" => Ok(Picker::RatioWindow(RatioWindow { group, ..RatioWindow::default() })),
        "levels" => Ok(Picker::Levels(Levels::default())),
        "components" => Ok(Picker::Components(Components::default())),
        "guards" => Ok(Picker::Guards),
        "drain" => Ok(Picker::Drain(Drain::default())),
        _ => {
            Err("a picker is cursor, least-overlap, ratio-window, levels, components, guards or drain".into())
        }
    }
}

fn cutter(value: &str, tables: TableSize) -> Result<Cutter> {
    match value {
        "size" => Ok(Cutter::Size(tables)),
        "prefix" => Ok(Cutter::Prefix(tables)),
        "guards" => Ok(Cutter::Guards(tables)),
        _ => Err("a cutter is size, prefix or guards".into()),
    }
}

fn flushes(value: &str) -> Result<Flushes> {
    match value {
        "cut" => Ok(Flushes::Cut),
        "whole" => Ok(Flushes::Whole),
        _ => Err("flushes are cut or whole".into()),
    }
}

fn descriptors(value: &str) -> Result<Descriptors> {
    match value {
        "per-pack" => Ok(Descriptors::PerPack),
        "per-table" => Ok(Descriptors::PerTable),
        _ => Err("descriptors are per-pack or per-table".into()),
    }
}

fn is_on(value: &str) -> Result<bool> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("a switch is on or off".into()),
    }
}

fn size(value: &str) -> Result<u64> {
    let (digits, unit) = match value.as_bytes().last() {
        Some(b'K') => (&value[..value.len() - 1], 1 << 10),
        Some(b'M') => (&value[..value.len() - 1], 1 << 20),
        Some(b'G') => (&value[..value.len() - 1], 1 << 30),
        _ => (value, 1),
    };
    digits.parse::<u64>()?.checked_mul(unit).ok_or_else(|| "too large".into())
}

#[cfg(test)]
mod tests {
    use terrace::tree::Retainer;

    use super::*;
    use terrace::tree::Files;

    #[test]
    fn every_profile_is_known_by_its_name() {
        for name in Options::profiles() {
            assert_eq!(Some(options(name).unwrap()), Options::profile(name));
        }
    }

    #[test]
    fn a_level_may_move() {
        let placed =
            |value: &str| options(&format!("default:placer={value}")).map(|options| options.tree.placer);
        assert_eq!(placed("level2").unwrap(), Placer::Level { upto: 2, adapt: false });
        assert_eq!(placed("level2/adapt").unwrap(), Placer::Level { upto: 2, adapt: true });
        assert!(placed("dynamic/adapt").is_err() && placed("level/adapt").is_err());
    }

    /// A field of the tree that is forgotten here cannot be set.
    #[test]
    fn every_part_can_be_set() {
        let text = "default:table_bytes=2M:flushes=whole:packs=64M:descriptors=per-table:placer=mod4/job:\
                    group_bytes=3G:group_parts=5:picker=least-overlap:settle=off:block_bytes=8K:partitioned_bytes_min=9M:\
                    layout=leveled:level1_bytes=11M:ratio=8:l0_trigger=2:l0_slow=6:l0_stop=7:\
                    debt_slow_bytes=8:debt_stop_bytes=9:yield_disk=off:yield_processor=off:values=log";
        let expected = TreeOptions {
            layout: Layout::Leveled(Leveled { level1_bytes: 11 << 20, ratio: 8, l0_trigger: 2 }),
            picker: Picker::LeastOverlap(Group { bytes: 3 << 30, parts: 5, settle: false }),
            cutter: Cutter::Size(TableSize { table_bytes: 2 << 20, flushes: Flushes::Whole }),
            retainer: Retainer::Drop,
            pacer: Pacer::Steady(Steady {
                limits: Governor { l0_slow: 6, l0_stop: 7, debt_slow_bytes: 8, debt_stop_bytes: 9 },
                yield_disk: false,
                yield_processor: false,
            }),
            files: Files {
                packs: PackLayout::Many { bytes_max: 64 << 20 },
                descriptors: Descriptors::PerTable,
            },
            placer: Placer::Mod { n: 4, unit: Unit::Job },
            caching: Caching::Adaptive,
            value_order: ValueOrder::Log,
            block_bytes: 8 << 10,
            partitioned_bytes_min: 9 << 20,
        };
        assert_eq!(options(text).unwrap(), Options { tree: expected, ..Options::default() });
        let adaptive = options("leveldb-2m:layout=adaptive:l0_bytes=12M:l0_runs=5:packs=1G").unwrap().tree;
        assert_eq!(adaptive.layout, Layout::Adaptive(Adaptive { l0_bytes: 12 << 20, l0_runs: 5 }));
        let (packs, descriptors) = (PackLayout::Many { bytes_max: 1 << 30 }, Descriptors::PerTable);
        assert_eq!(adaptive.files, Files { packs, descriptors });
        let guarded = options(
            "default:layout=guarded:picker=guards:cutter=guards:l0_trigger=3:top_bits=20:bits_step=1:runs_max=4:guard_bytes=1M",
        );
        let expected =
            Guarded { l0_trigger: 3, top_bits: 20, bits_step: 1, runs_max: 4, guard_bytes: 1 << 20 };
        assert_eq!(guarded.unwrap().tree.layout, Layout::Guarded(expected));
        let tiered = options(
            "default:layout=tiered:level1_bytes=12M:ratio=6:runs=3:last_runs=1:l0_trigger=2:picker=levels:part_bytes=8M",
        );
        let tiered = tiered.unwrap().tree;
        let limits = Tiered { level1_bytes: 12 << 20, ratio: 6, runs: 3, last_runs: 1, l0_trigger: 2 };
        assert_eq!(tiered.layout, Layout::Tiered(limits));
        assert_eq!(tiered.picker, Picker::Levels(Levels { part_bytes: 8 << 20 }));
        let geared = options(
            "default:layout=geared:level1_bytes=12M:ratio=6:l0_trigger=2:picker=drain:unit_bytes=8M:retainer=buffer:cached_percent=70\
             :period_ms=1500:share_percent=20:caching=blocks",
        );
        let geared = geared.unwrap().tree;
        assert_eq!(geared.layout, Layout::Geared(Geared { level1_bytes: 12 << 20, ratio: 6, l0_trigger: 2 }));
        assert_eq!(geared.picker, Picker::Drain(Drain { unit_bytes: 8 << 20 }));
        let buffer = Buffer { cached_percent: 70, period: Duration::from_millis(1500), share_percent: 20 };
        assert_eq!((geared.retainer, geared.caching), (Retainer::Buffer(buffer), Caching::Blocks));
        let text = "default:layout=prefixed:level1_bytes=3M:ratio=6:l0_trigger=5:picker=components:moves=off:\
                    access_bytes=0:accesses_min=7:job_bytes=1M:cutter=prefix:table_bytes=4M";
        let prefixed = options(text).unwrap().tree;
        let limits = Prefixed { level1_bytes: 3 << 20, ratio: 6, l0_trigger: 5 };
        assert_eq!(prefixed.layout, Layout::Prefixed(limits));
        let components = Components { moves: false, access_bytes: 0, accesses_min: 7, job_bytes: 1 << 20 };
        assert_eq!(prefixed.picker, Picker::Components(components));
        let tables = TableSize { table_bytes: 4 << 20, flushes: Flushes::Cut };
        assert_eq!(prefixed.cutter, Cutter::Prefix(tables));
        let separate = Files { packs: PackLayout::OneTable, ..Files::default() };
        let tree = options("default:packs=one-table:picker=cursor:flushes=cut:settle=on").unwrap().tree;
        assert_eq!(tree, TreeOptions { files: separate, ..TreeOptions::default() });
    }

    #[test]
    fn every_part_of_a_window_can_be_set() {
        let picker = |text: &str| options(text).unwrap().tree.picker;
        let hyper = picker("hyperleveldb-32m:window_tables=9:oldest_runs=8:group_bytes=4M");
        let group = Group { bytes: 4 << 20, ..Group::SINGLE };
        assert_eq!(hyper, Picker::RatioWindow(RatioWindow { group, window_tables: 9, oldest_runs: 8 }));
        let group = Group::default();
        let default = picker("default:picker=ratio-window");
        assert_eq!(default, Picker::RatioWindow(RatioWindow { group, ..RatioWindow::default() }));
    }

    #[test]
    fn every_part_of_a_pacer_can_be_set() {
        let pacer = |text: &str| options(text).unwrap().tree.pacer;
        let soft = pacer("default:pacer=soft-sleep:l0_free=9:nanos_per_run=10");
        assert_eq!(soft, Pacer::SoftSleep(SoftSleep { l0_free: 9, nanos_per_run: 10 }));
        let limits = Governor { l0_slow: 50, ..Governor::default() };
        let gear = pacer("default:l0_slow=50:pacer=gear:spring_percent=90:spring_ms=20");
        assert_eq!(gear, Pacer::Gear(Gear { limits, spring_percent: 90, spring: Duration::from_millis(20) }));
        let bandwidth = Bandwidth { device: Some(64 << 20), floor_percent: 7 };
        let silk = pacer(
            "default:l0_slow=50:pacer=silk:bandwidth=64M:floor_percent=7:estimator=1K+2K:interval_ms=5:pause_percent=60",
        );
        let expected = Silk {
            limits,
            bandwidth,
            estimator: LoadEstimator::Weights { get_bytes: 1 << 10, scan_bytes: 2 << 10 },
            interval: Duration::from_millis(5),
            pause_percent: 60,
        };
        assert_eq!(silk, Pacer::Silk(expected));
        let dlc = pacer(
            "default:l0_slow=50:pacer=dlc:bandwidth=64M:floor_percent=7:estimator=operations:interval_ms=5:\
             high_percent=9:low_percent=8:softness=2:high_softness=4:peak=delay-part:burst=20x4",
        );
        let expected = Dlc {
            limits,
            bandwidth,
            estimator: LoadEstimator::Operations,
            interval: Duration::from_millis(5),
            high_percent: 9,
            low_percent: 8,
            softness: 2,
            high_softness: 4,
            peak: Peak::DelayPart,
            burst: Burst::Part { runs: 20, parts: 4 },
        };
        assert_eq!(dlc, Pacer::Dlc(expected));
        let Pacer::Dlc(Dlc { peak, burst, estimator, .. }) =
            pacer("dlc-part:peak=delay-full:burst=20:estimator=composite")
        else {
            panic!("DLC");
        };
        assert_eq!((peak, burst), (Peak::DelayFull, Burst::Full { runs: 20 }));
        assert_eq!(estimator, LoadEstimator::Composite);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("", "leveldb-64m"),
            ("sled", "leveldb-64m"),
            ("default:", "PART=VALUE"),
            ("default:settle", "PART=VALUE"),
            ("default:settle=maybe", "settle=maybe"),
            ("default:group_bytes=64Q", "group_bytes=64Q"),
            ("default:group_bytes=99999999999G", "too large"),
            ("leveldb-2m:ratio=1", "tree.layout.ratio"),
            ("default:ratio=4", "layout=leveled"),
            ("leveldb-2m:l0_runs=4", "layout=adaptive"),
            ("default:oldest_runs=4", "picker=ratio-window"),
            ("default:layout=striped", "guarded or geared"),
            ("default:top_bits=9", "layout=guarded"),
            ("default:picker=least-overlap:layout=guarded", "all be of guards"),
            ("default:period_ms=5", "retainer=buffer"),
            ("default:unit_bytes=1M", "picker=drain"),
            ("default:caching=records", "warm-up"),
            ("default:cutter=knife", "size, prefix or guards"),
            ("default:layout=prefixed", "Picker::Components"),
            ("ptier:picker=cursor", "Picker::Components"),
            ("default:moves=on", "picker=components"),
            ("default:l0_slow=2", "tree.layout.l0_runs"),
            ("default:memory_bytes=1G", "terrace::tree"),
            ("default:burst=20", "pacer=dlc"),
            ("default:pacer=spring", "silk, dlc or gear"),
            ("default:spring_ms=20", "pacer=gear"),
            ("default:pacer=dlc:burst=1", "tree.pacer.burst.runs"),
            ("default:pacer=dlc:low_percent=90", "tree.pacer.low_percent"),
        ] {
            let error = options(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
