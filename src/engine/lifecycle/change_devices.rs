//! Devices that come and go while the store is open.

use std::path::Path;
use std::sync::Arc;

use super::devices;
use super::engine::Engine;
use super::opening::Opening;
use crate::error::{Error, ErrorKind, Result};
use crate::store::files::devices::Member;
use crate::store::identity;
use crate::types::DeviceId;

impl Engine {
    /// Takes in `dir` as a device.
    pub(crate) fn add_device(&self, dir: &Path) -> Result<()> {
        self.write.writer()?;
        let _changing = self.closing.lock();
        self.health.check_writable()?;
        let opening = Opening {
            dir: self.dir().to_path_buf(),
            devices: vec![dir.to_path_buf()],
            env: self.jobs.env.clone(),
            options: self.settings().options.clone(),
            read_only: false,
            must_exist: true,
            listener: self.jobs.events.listener(),
            filters: self.jobs.filters.clone(),
        };
        let store = identity::read(&self.jobs.storage.device)?.store;
        devices::add(&opening, store, &self.background.meter, &self.jobs.storage.devices)
    }

    /// Moves all tables away from the device in `dir`, which gets no more.
    pub(crate) fn drain_device(&self, dir: &Path) -> Result<()> {
        self.write.writer()?;
        let member = self.device_in(dir)?;
        let devices = &self.jobs.storage.devices;
        devices.set_leaving(member.id, true);
        let drained = self.background.drain(member.id);
        if drained.is_err() {
            devices.set_leaving(member.id, false);
        }
        self.jobs.storage.wait_reclaimed();
        drained
    }

    /// Drains the device in `dir`, and lets it go.
    pub(crate) fn remove_device(&self, dir: &Path) -> Result<()> {
        self.drain_device(dir)?;
        let _changing = self.closing.lock();
        self.health.check_writable()?;
        devices::remove(&self.jobs.storage.devices, self.device_in(dir)?.id)
    }

    /// The device in `dir`, which is not home.
    fn device_in(&self, dir: &Path) -> Result<Arc<Member>> {
        let dir = self.jobs.env.canonical(dir).map_err(|e| Error::io("find the directory", dir, e))?;
        let members = self.jobs.storage.devices.members();
        let found = members.iter().find(|member| member.device.dir() == dir);
        match found {
            Some(member) if member.id != DeviceId(0) => Ok(member.clone()),
            Some(_) => {
                let message = format!("{} has the log and the manifest, and stays", dir.display());
                Err(Error::new(ErrorKind::InvalidInput, message))
            }
            None => {
                let message =
                    format!("{} is no device of the store in {}", dir.display(), self.dir().display());
                Err(Error::new(ErrorKind::InvalidInput, message))
            }
        }
    }
}
