//! Profiles by name: options of a profile, with single parts of its tree set otherwise.

use terrace::{Descriptors, Options, PackLayout, TreeOptions, Victims};

use crate::Result;

/// The options of a profile, with those parts of its tree set otherwise that are named behind it.
///
/// Parts are named as the fields of [`TreeOptions`] are. Sizes are in bytes, or with `K`, `M` or `G` behind the number in
/// units of 2^10, 2^20 or 2^30; switches are `on` or `off`; `level_ratio` is a number or `auto`; `victims`
/// is `cursor` or `least-overlap`; `descriptors` is `per-pack` or `per-table`; `pack` is `one-table`, or the size beyond which a compaction goes on in a new file.
///
/// # Errors
/// An unknown profile or part, or a value out of its range.
///
/// ```
/// use terrace_bench::store::options;
///
/// let unsettled = options("default:settle=off:group_bytes=64M")?;
/// assert!(!unsettled.tree.settle);
/// assert_eq!(unsettled.tree.group_bytes, 64 << 20);
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
        "table_bytes" => tree.table_bytes = size(value)?,
        "pack" if value == "one-table" => tree.pack = PackLayout::OneTable,
        "pack" => tree.pack = PackLayout::Many { bytes_max: size(value)? },
        "group_bytes" => tree.group_bytes = size(value)?,
        "group_parts" => tree.group_parts = value.parse()?,
        "victims" => tree.victims = victims(value)?,
        "settle" => tree.settle = is_on(value)?,
        "descriptors" => tree.descriptors = descriptors(value)?,
        "flush_single_table" => tree.flush_single_table = is_on(value)?,
        "block_bytes" => tree.block_bytes = size(value)?.try_into()?,
        "level1_bytes" => tree.level1_bytes = size(value)?,
        "level_ratio" if value == "auto" => tree.level_ratio = None,
        "level_ratio" => tree.level_ratio = Some(value.parse()?),
        "l0_trigger" => tree.l0_trigger = value.parse()?,
        "l0_slow" => tree.l0_slow = value.parse()?,
        "l0_stop" => tree.l0_stop = value.parse()?,
        "debt_slow_bytes" => tree.debt_slow_bytes = size(value)?,
        "debt_stop_bytes" => tree.debt_stop_bytes = size(value)?,
        "throttle_compactions" => tree.throttle_compactions = is_on(value)?,
        _ => return Err("no such part; parts are named as the fields of TreeOptions are".into()),
    }
    Ok(())
}

fn victims(value: &str) -> Result<Victims> {
    match value {
        "cursor" => Ok(Victims::Cursor),
        "least-overlap" => Ok(Victims::LeastOverlap),
        _ => Err("victims are cursor or least-overlap".into()),
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
    use super::*;

    #[test]
    fn every_profile_is_known_by_its_name() {
        for name in Options::profiles() {
            assert_eq!(Some(options(name).unwrap()), Options::profile(name));
        }
    }

    /// A field of the tree that is forgotten here cannot be set.
    #[test]
    fn every_part_can_be_set() {
        let text = "default:table_bytes=2M:pack=64M:group_bytes=3G:group_parts=5:victims=least-overlap:settle=off:\
                    descriptors=per-table:flush_single_table=on:block_bytes=8K:level1_bytes=10M:level_ratio=8:l0_trigger=2:l0_slow=6:l0_stop=7:\
                    debt_slow_bytes=8:debt_stop_bytes=9:merges_yield=off";
        let expected = TreeOptions {
            table_bytes: 2 << 20,
            pack: PackLayout::Many { bytes_max: 64 << 20 },
            group_bytes: 3 << 30,
            group_parts: 5,
            victims: Victims::LeastOverlap,
            settle: false,
            descriptors: Descriptors::PerTable,
            flush_single_table: true,
            block_bytes: 8 << 10,
            level1_bytes: 10 << 20,
            level_ratio: Some(8),
            l0_trigger: 2,
            l0_slow: 6,
            l0_stop: 7,
            debt_slow_bytes: 8,
            debt_stop_bytes: 9,
            throttle_compactions: false,
        };
        assert_eq!(options(text).unwrap(), Options { tree: expected, ..Options::default() });
        assert_eq!(options("leveldb-2m:level_ratio=auto").unwrap().tree.level_ratio, None);
        assert_eq!(options("default:pack=one-table").unwrap().tree.pack, PackLayout::OneTable);
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
            ("default:level_ratio=1", "level_ratio"),
            ("default:memory_bytes=1G", "TreeOptions"),
        ] {
            let error = options(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
