//! The frames of a log, whatever they hold.

use std::io::{self, Write};

use terrace::format::log::{Frame, FrameReader, LogBytes, Tail};

use super::{Line, Printer};

/// Prints the frames of the log `log_id`, each by `print`, and skips damage.
pub fn dump_frames<W: Write>(
    log_id: u64,
    bytes: impl LogBytes<Error = io::Error>,
    printer: &mut Printer<W>,
    mut print: impl FnMut(&Frame<'_>, &mut Printer<W>) -> io::Result<()>,
) -> io::Result<()> {
    let mut frames = FrameReader::over(log_id, bytes);
    loop {
        while let Some(frame) = frames.next_frame()? {
            print(&frame, printer)?;
        }
        let tail = frames.read_tail()?;
        let goes_on = frames.find_next()?;
        match tail {
            Tail::Clean { offset } => {
                return printer.line(&Line::new(0, "end").field("offset", offset).field("state", "clean"));
            }
            _ if goes_on => {
                let (next, problem) = (frames.state().0, "no frame that checks and continues the log");
                let (Tail::Clean { offset } | Tail::Torn { offset } | Tail::Damaged { offset }) = tail;
                printer.damage(0, offset, &format!("{problem}, up to offset {next}"))?;
            }
            Tail::Torn { offset } => {
                let state = "torn, or followed by what the file held before";
                return printer.line(&Line::new(0, "end").field("offset", offset).field("state", state));
            }
            Tail::Damaged { offset } => {
                return printer.damage(0, offset, "what was durable is no longer right");
            }
        }
    }
}
