//! What a test can learn from the files of a store.

use std::collections::BTreeMap;
use std::path::PathBuf;

use terrace::env::simulated::SimEnv;
use terrace::format::pack::{PACK_TRAILER_BYTES, PackDirectory};

use crate::client;

/// The packs that a job has sealed. Others are preallocated, and hold nothing or a dead pack.
pub fn sealed_packs(env: &SimEnv) -> Vec<PathBuf> {
    let packs = pack_directories(env).into_iter();
    packs.filter(|(_, directory)| directory.is_some()).map(|(path, _)| path).collect()
}

/// All packs, with the directories of those that a job has sealed.
pub fn pack_directories(env: &SimEnv) -> BTreeMap<PathBuf, Option<PackDirectory>> {
    let directory = |path: &PathBuf| {
        let bytes = env.read_file(path).unwrap();
        let trailer = bytes.get(bytes.len().checked_sub(PACK_TRAILER_BYTES)?..)?;
        let length = PackDirectory::decode_trailer(trailer).ok()?;
        let directory = PackDirectory::decode(bytes.get(bytes.len().checked_sub(length)?..)?).ok()?;
        path.ends_with(format!("{:06}.pack", directory.pack.0)).then_some(directory)
    };
    let files = env.files().into_iter().map(|(path, _)| path);
    let packs = files
        .filter(|path| path.starts_with(client::DIR) && path.extension().is_some_and(|kind| kind == "pack"));
    packs.map(|path| (path.clone(), directory(&path))).collect()
}
