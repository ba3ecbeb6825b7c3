//! The file IDENTITY of a directory: whose it is.

use super::files::device::Device;
use super::files::meter::ReadCause;
use crate::env::Access;
use crate::error::Result;
use crate::format::identity::{IDENTITY_BYTES, Identity};
use crate::format::names::FileName;

/// Reads the file.
pub(crate) fn read(device: &Device) -> Result<Identity> {
    let file = device.open(FileName::Identity, Access::Read)?;
    // One byte more would be damage.
    let len = file.len()?.min(IDENTITY_BYTES as u64 + 1) as usize;
    Identity::decode(&file.read(ReadCause::Open, 0, len)?).map_err(|e| file.malformed(0, &e))
}

/// Makes `identity` that of the directory. It and its name are durable then.
pub(crate) fn write(device: &Device, identity: &Identity) -> Result<()> {
    device.replace(FileName::Identity, FileName::IdentityTemp, &identity.encode())
}
