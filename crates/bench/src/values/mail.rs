//! Mail: few values of tens of megabytes, of which a fifth is deleted.

use super::meter::Limit;
use super::session::Session;
use crate::Result;

/// Puts all values one after the other, then deletes a fifth.
pub(super) fn mail(session: &mut Session<'_>) -> Result<()> {
    let all = Limit { time: None, operations: session.records.count() };
    session.puts("put", all, &mut |step| step)?;
    session.deletes()
}
