//! The headers are what cbindgen makes of the sources. `TERRACE_WRITE_HEADERS=1 cargo test --test headers` writes them.

use std::path::{Path, PathBuf};

use cbindgen::{Builder, Config, Language, RenameRule};

/// What both headers have in common.
fn config(guard: &str) -> Config {
    let mut config = Config {
        language: Language::C,
        cpp_compat: true,
        include_guard: Some(guard.into()),
        usize_is_size_t: true,
        documentation: true,
        line_length: 110,
        tab_width: 4,
        autogen_warning: Some(
            "/* Made by cbindgen from the sources of the library. To change it, change those: see tests/headers.rs. */".into(),
        ),
        ..Config::default()
    };
    config.enumeration.rename_variants = RenameRule::QualifiedScreamingSnakeCase;
    config
}

/// The header of `sources`, all files of a folder of `src` and those that they need.
fn header(config: Config, folder: &str, more: &[&str]) -> String {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files: Vec<PathBuf> = std::fs::read_dir(src.join(folder))
        .expect("sources")
        .map(|entry| entry.expect("a source").path())
        .collect();
    files.retain(|file| file.file_name().is_some_and(|name| name != "mod.rs"));
    files.extend(more.iter().map(|file| src.join(file)));
    files.sort();
    let builder =
        files.iter().fold(Builder::new().with_config(config), |builder, file| builder.with_src(file));
    let mut header = Vec::new();
    builder.generate().expect("a header").write(&mut header);
    // Rust's heading for what a caller must see to.
    String::from_utf8(header).expect("text").replace(" * # Safety\n * ", " * Requires: ")
}

fn check(path: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(path);
    if std::env::var_os("TERRACE_WRITE_HEADERS").is_some() {
        std::fs::write(&path, made).expect("the header is written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = kept.lines().zip(made.lines()).position(|(kept, made)| kept != made);
    assert!(
        kept == made,
        "{} is not what the sources make, from line {} on; TERRACE_WRITE_HEADERS=1 writes it",
        path.display(),
        differs.map_or(kept.lines().count().min(made.lines().count()), |line| line) + 1,
    );
}

#[test]
fn terrace_h_is_current() {
    let mut config = config("TERRACE_H");
    config.header =
        Some("/* Terrace, an embedded key-value store, in C. README.md has an introduction. */".into());
    config.export.include =
        ["durability", "isolation", "compression", "prefix"].map(|name| format!("terrace_{name}")).into();
    config.includes = Vec::new();
    config.sys_includes = vec!["string.h".into()];
    config.after_includes =
        Some("\n/* An open database of leveldb/c.h. */\ntypedef struct leveldb_t leveldb_t;".into());
    config.export.exclude = vec!["leveldb_t".into()];
    config.trailer = Some(TRAILER.into());
    check("terrace.h", &header(config, "native", &["failure.rs"]));
}

/// Behind the guard of the header, so it has one of its own.
const TRAILER: &str = "\
#ifndef TERRACE_H_HELPERS
#define TERRACE_H_HELPERS

/* The bytes of a text, without the zero at its end. */
static inline terrace_slice terrace_text(const char *text) {
    terrace_slice slice = {text, strlen(text)};
    return slice;
}

/* The bytes at data, of which there are len. */
static inline terrace_slice terrace_bytes(const void *data, size_t len) {
    terrace_slice slice = {(const char *)data, len};
    return slice;
}

/* All keys. */
static inline terrace_range terrace_all(void) {
    terrace_range range = {{NULL, 0}, {NULL, 0}, false, false};
    return range;
}

/* The keys from one up to and without another. */
static inline terrace_range terrace_between(terrace_slice from, terrace_slice to) {
    terrace_range range = {from, to, false, false};
    return range;
}

#endif";

#[test]
fn leveldb_c_h_is_current() {
    let mut config = config("TERRACE_LEVELDB_C_H");
    config.header = Some("/* LevelDB's interface in C, by Terrace. README.md lists what differs. */".into());
    config.no_includes = true;
    config.includes = vec!["leveldb/export.h".into()];
    config.sys_includes = ["stdarg.h", "stddef.h", "stdint.h"].map(Into::into).into();
    config.after_includes = Some(
        "\n/* For leveldb_options_set_compression(). */\nenum { leveldb_no_compression = 0, leveldb_snappy_compression = 1 };\n\n\
         /* Types of LevelDB's header that no function has. */\ntypedef struct leveldb_filelock_t leveldb_filelock_t;\n\
         typedef struct leveldb_randomfile_t leveldb_randomfile_t;\ntypedef struct leveldb_seqfile_t leveldb_seqfile_t;\n\
         typedef struct leveldb_writablefile_t leveldb_writablefile_t;"
            .into(),
    );
    config.function.prefix = Some("LEVELDB_EXPORT".into());
    check("leveldb/c.h", &header(config, "leveldb", &[]));
}
