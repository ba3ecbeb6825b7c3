//! RAID 0 in user space: an environment that spreads some files of a directory over several, in chunks.
//!
//! # How
//!
//! 1. The caller names directories with weights, a size of chunks, and how the names of files end that are to be spread. For a
//!    store these are its packs. Everything else of the first directory, *home*, is there alone.
//! 2. A striped file has a file of the same name in each directory. `layout` says which chunk is on which.
//! 3. Large reads and writes, and syncs, go to all members at the same time, each from a thread of its own.
//!
//! It is a baseline for stores that place whole tables: with as many chunks for each, it is
//! as fast as so many times the slowest disk.
//!
//! # What a power cut may leave
//!
//! A call on a striped file is one on each member, and the power may go between two. So a file may be there on some members alone,
//! or have its old name on some and its new name on others. It is listed if any member has it, and opened only if all have it. So
//! whoever removes what nobody knows, as a store does when it is opened, removes such remains, too. [`Env::sync_dir`] of home makes
//! the names on all members durable, and [`File::sync`] the contents on all.
//!
//! # What it does not do
//!
//! There is no redundancy: a lost disk is a lost stripe. A store that is there already is not spread. Renames to a name that is
//! taken are not atomic for striped files; a store has none.

mod at_once;
mod file;
mod layout;
mod mark;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use self::at_once::{Task, at_once};
use self::file::StripedFile;
use self::layout::Layout;
use super::sync::Mutex;
use super::{Access, Env, File, FileLock, LockKind, Priority, Space, Thread, Work};

/// What a stripe is made of.
///
/// ```
/// use terrace::env::striped::Stripe;
/// let stripe = Stripe { weights: vec![5, 1], ..Stripe::default() };
/// assert_eq!(stripe.chunk_bytes, 256 << 10);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stripe {
    /// Bytes of a chunk: a multiple of 4 KiB, from 64 KiB to 512 KiB for disks.
    pub chunk_bytes: u64,
    /// Chunks that each directory gets in turn, 1 to 64; one for each, home first.
    pub weights: Vec<u32>,
    /// How the names of files end that are spread.
    pub suffix: String,
}

impl Default for Stripe {
    /// Packs, in chunks of 256 KiB, evenly over two directories.
    fn default() -> Self {
        Self { chunk_bytes: 256 << 10, weights: vec![1, 1], suffix: ".pack".into() }
    }
}

/// An environment in which some files of one directory are spread over several.
///
/// ```
/// use std::path::Path;
/// use terrace::Db;
/// use terrace::env::Env;
/// use terrace::env::simulated::{SimConfig, SimEnv};
/// use terrace::env::striped::{Stripe, StripedEnv};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let machine = SimEnv::new(SimConfig::default());
/// let env = StripedEnv::new(machine, Path::new("/nvme"), &[Path::new("/sata")], Stripe::default())?;
/// let db = Db::builder("/nvme").env(env).open()?;
/// db.put("key", "value")?;
/// db.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StripedEnv {
    inner: Arc<dyn Env>,
    layout: Arc<Layout>,
    /// Home first.
    dirs: Vec<PathBuf>,
    /// Home without symbolic links.
    canonical: PathBuf,
    suffix: String,
    /// Striped files of other names, which they got later.
    renamed: Mutex<BTreeSet<PathBuf>>,
}

impl StripedEnv {
    /// Spreads files of `home` over it and `others`, which are made if they are not there. The directories should be on file
    /// systems of their own, or [`Env::space`] counts one several times.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a `stripe` out of its bounds; for directories that have striped files and are not those of one stripe laid
    /// out so. Errors of `inner`.
    pub fn new(inner: Arc<dyn Env>, home: &Path, others: &[&Path], stripe: Stripe) -> io::Result<Arc<Self>> {
        let Stripe { chunk_bytes, weights, suffix } = stripe;
        let is_right = chunk_bytes > 0
            && chunk_bytes.is_multiple_of(4096)
            && weights.len() == others.len() + 1
            && weights.iter().all(|weight| (1..=64).contains(weight))
            && !suffix.is_empty();
        if !is_right {
            let why =
                "a stripe has chunks of whole 4 KiB, and a weight of 1 to 64 for each of its directories";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let dirs: Vec<PathBuf> = std::iter::once(&home).chain(others).map(|dir| dir.to_path_buf()).collect();
        dirs.iter().try_for_each(|dir| inner.create_dir(dir))?;
        let names: Vec<PathBuf> = dirs.iter().map(|dir| inner.canonical(dir)).collect::<io::Result<_>>()?;
        if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a directory of the stripe is given twice",
            ));
        }
        let layout = Arc::new(Layout::new(chunk_bytes, &weights));
        mark::check(&*inner, &dirs, &layout, &suffix)?;
        let canonical = names[0].clone();
        let env = Self { inner, layout, dirs, canonical, suffix, renamed: Mutex::default() };
        // What has another name is left from before a power cut.
        for dir in &env.dirs[1..] {
            let left = env.inner.list(dir)?.into_iter().filter(|name| !mark::NAMES.contains(&name.as_str()));
            env.renamed.lock().extend(left.map(PathBuf::from));
        }
        Ok(Arc::new(env))
    }

    fn is_home(&self, dir: &Path) -> bool {
        dir == self.dirs[0] || dir == self.canonical
    }

    /// The names on all members of a striped file, `path`, whether it is there or not; `None` for all other files.
    fn members(&self, path: &Path) -> Option<Vec<PathBuf>> {
        let name = path.file_name().filter(|_| path.parent().is_some_and(|dir| self.is_home(dir)))?;
        let is_striped = self.is_named_so(name) || self.renamed.lock().contains(Path::new(name));
        is_striped.then(|| self.dirs.iter().map(|dir| dir.join(name)).collect())
    }

    fn is_named_so(&self, name: &OsStr) -> bool {
        name.to_str().is_some_and(|name| name.ends_with(&self.suffix))
    }

    fn striped(&self, path: &Path, files: Vec<Arc<dyn File>>) -> Arc<dyn File> {
        let (env, layout) = (self.inner.clone(), self.layout.clone());
        Arc::new(StripedFile { env, layout, path: path.to_path_buf(), files })
    }

    /// Makes a file on each member; after a failure, on none, as far as that is possible.
    fn make(
        &self,
        path: &Path,
        members: &[PathBuf],
        make: impl Fn(usize, &Path) -> io::Result<Arc<dyn File>>,
    ) -> io::Result<Arc<dyn File>> {
        let mut files = Vec::new();
        for (member, name) in members.iter().enumerate() {
            match make(member, name) {
                Ok(file) => files.push(file),
                Err(error) => {
                    members[..member].iter().for_each(|name| _ = self.inner.remove(name));
                    return Err(error);
                }
            }
        }
        Ok(self.striped(path, files))
    }

    /// As [`Env::rename`], of a striped file.
    fn rename_members(&self, names: &[PathBuf], to: &Path) -> io::Result<()> {
        let name = to.file_name().filter(|_| to.parent().is_some_and(|dir| self.is_home(dir)));
        let Some(name) = name else {
            let why = "a striped file stays in its directory";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        };
        let is_named_so = self.is_named_so(name);
        // Before the first member has the name: who asks meanwhile takes it for striped.
        if !is_named_so {
            self.renamed.lock().insert(PathBuf::from(name));
        }
        for (at, from) in names.iter().enumerate() {
            if let Err(error) = self.inner.rename(from, &self.dirs[at].join(name)) {
                let back = (0..at).rev().map(|at| self.inner.rename(&self.dirs[at].join(name), &names[at]));
                let is_back = back.fold(true, |all, renamed| all & renamed.is_ok());
                if is_back && !is_named_so {
                    self.renamed.lock().remove(Path::new(name));
                }
                return Err(error);
            }
        }
        self.forget(&names[0]);
        Ok(())
    }

    /// There is no striped file of that name any more.
    fn forget(&self, path: &Path) {
        if let Some(name) = path.file_name() {
            self.renamed.lock().remove(Path::new(name));
        }
    }
}

impl Env for StripedEnv {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        if self.is_home(dir) {
            self.dirs.iter().try_for_each(|dir| self.inner.create_dir(dir))
        } else {
            self.inner.create_dir(dir)
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names = self.inner.list(dir)?;
        if !self.is_home(dir) {
            return Ok(names);
        }
        let mut all: BTreeSet<String> = names.into_iter().collect();
        for dir in &self.dirs[1..] {
            all.extend(self.inner.list(dir)?);
        }
        Ok(all.into_iter().filter(|name| !mark::NAMES.contains(&name.as_str())).collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if !self.is_home(dir) {
            return self.inner.sync_dir(dir);
        }
        let task = |dir: &PathBuf| -> Task<()> {
            let (env, dir) = (self.inner.clone(), dir.clone());
            Box::new(move || env.sync_dir(&dir))
        };
        at_once(&*self.inner, self.dirs.iter().map(task).collect()).map(drop)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        match self.members(path) {
            Some(members) => self.make(path, &members, |_, name| self.inner.create(name)),
            None => self.inner.create(path),
        }
    }

    /// A striped file of which a member is missing is not there.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let Some(members) = self.members(path) else { return self.inner.open(path, access) };
        let files: io::Result<_> = members.iter().map(|name| self.inner.open(name, access)).collect();
        Ok(self.striped(path, files?))
    }

    fn copy(&self, from: &dyn File, to: &Path, ranges: &[Range<u64>]) -> io::Result<Arc<dyn File>> {
        let source = (from as &dyn Any).downcast_ref::<StripedFile>();
        match (self.members(to), source) {
            // Member by member, so that they can share storage.
            (Some(members), Some(source)) if source.layout == self.layout => {
                let copied = self.make(to, &members, |member, name| {
                    let length = source.files[member].len()?;
                    let parts = ranges.iter().map(|range| {
                        let part = self.layout.parts(member, range);
                        part.start..part.end.min(length)
                    });
                    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
                    self.inner.copy(&*source.files[member], name, &parts)
                })?;
                // What a member lacked at its end is a hole in the copy, too.
                let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
                if copied.len()? < end {
                    copied.set_len(end)?;
                }
                Ok(copied)
            }
            (Some(_), _) => {
                let target = self.create(to)?;
                ranges.iter().try_for_each(|range| super::copy_bytes(from, &*target, range.clone()))?;
                Ok(target)
            }
            (None, _) => self.inner.copy(from, to, ranges),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self.members(from) {
            Some(names) => self.rename_members(&names, to),
            None if self.members(to).is_some() => {
                let why = "a file that is not striped takes no name of one that is";
                Err(io::Error::new(io::ErrorKind::InvalidInput, why))
            }
            None => self.inner.rename(from, to),
        }
    }

    /// Also of a file that is on some members alone.
    fn remove(&self, path: &Path) -> io::Result<()> {
        let Some(members) = self.members(path) else { return self.inner.remove(path) };
        let mut found = false;
        for name in &members {
            match self.inner.remove(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => {
                    removed?;
                    found = true;
                }
            }
        }
        self.forget(path);
        if found { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<FileLock> {
        self.inner.lock(path, kind)
    }

    fn canonical(&self, dir: &Path) -> io::Result<PathBuf> {
        self.inner.canonical(dir)
    }

    /// Of home: what fits until the first member is full.
    fn space(&self, dir: &Path) -> io::Result<Space> {
        if !self.is_home(dir) {
            return self.inner.space(dir);
        }
        let all = self.layout.pattern().len() as u64;
        let mut least: Option<Space> = None;
        for (member, dir) in self.dirs.iter().enumerate() {
            let Space { total, free } = self.inner.space(dir)?;
            let scaled = |bytes: u64| (bytes / self.layout.weight(member)).saturating_mul(all);
            let (total, free) = (scaled(total), scaled(free));
            let before = least.unwrap_or(Space { total, free });
            least = Some(Space { total: before.total.min(total), free: before.free.min(free) });
        }
        least.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn unix_millis(&self) -> u64 {
        self.inner.unix_millis()
    }

    fn sleep(&self, time: Duration) {
        self.inner.sleep(time);
    }

    fn spend(&self, work: Work) {
        self.inner.spend(work);
    }

    fn set_urgent(&self, urgent: bool) {
        self.inner.set_urgent(urgent);
    }

    fn spawn(&self, name: &str, priority: Priority, body: Box<dyn FnOnce() + Send>) -> io::Result<Thread> {
        self.inner.spawn(name, priority, body)
    }

    fn cores(&self) -> usize {
        self.inner.cores()
    }

    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }
}
