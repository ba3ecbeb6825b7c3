//! The file DEVICES at home: the directories of a store besides home.

use super::files::device::Device;
use super::files::meter::ReadCause;
use crate::env::Access;
use crate::error::Result;
use crate::format::devices::DeviceList;
use crate::format::names::FileName;

/// Reads the file, which must be there.
pub(crate) fn read(home: &Device) -> Result<DeviceList> {
    let file = home.open(FileName::Devices, Access::Read)?;
    let bytes = file.read(ReadCause::Open, 0, usize::try_from(file.len()?).unwrap_or(usize::MAX))?;
    DeviceList::decode(&bytes).map_err(|e| file.malformed(0, &e))
}

/// Reads the file; `None` if there is none.
pub(crate) fn find(home: &Device) -> Result<Option<DeviceList>> {
    if home.list()?.contains(&FileName::Devices) { read(home).map(Some) } else { Ok(None) }
}

/// Makes `list` the one in force. It is durable then.
pub(crate) fn write(home: &Device, list: &DeviceList) -> Result<()> {
    home.replace(FileName::Devices, FileName::DevicesTemp, &list.encode())
}
