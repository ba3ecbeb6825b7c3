//! What the statistics do not have and a [`Monitor`](crate::Monitor) notices: times of calls and jobs, stalls as they
//! happen, errors.

use super::Source::Monitor;
use super::Unit::{Count, None, Seconds};
use super::{Metric, counter, gauge, histogram};

pub(super) static METRICS: &[Metric] = &[
    histogram(
        "terrace_operation_seconds",
        Seconds,
        "How long calls of the store took, of those that the program times.",
        Monitor(&["operation"], |monitor, series| monitor.operations(series)),
    ),
    histogram(
        "terrace_job_seconds",
        Seconds,
        "How long flushes, compactions and rewrites took, failed ones included.",
        Monitor(&["kind"], |monitor, series| monitor.jobs(series)),
    ),
    histogram(
        "terrace_stall_episode_seconds",
        Seconds,
        "How long writers were slowed or stopped in one go, by reason.",
        Monitor(&["reason", "state"], |monitor, series| monitor.stall_episodes(series)),
    ),
    gauge(
        "terrace_stalled",
        None,
        "1 while writers are slowed or stopped, for this reason; until a write finds nothing in its way.",
        Monitor(&["reason", "state"], |monitor, series| monitor.stalled(series)),
    ),
    counter(
        "terrace_errors_total",
        Count,
        "Errors: of calls that the program times, of background jobs, and the one that poisoned the store.",
        Monitor(&["origin", "kind"], |monitor, series| monitor.errors(series)),
    ),
    gauge(
        "terrace_last_error_timestamp_seconds",
        Seconds,
        "When the latest error of a kind happened, in seconds since 1970.",
        Monitor(&["origin", "kind"], |monitor, series| monitor.last_errors(series)),
    ),
    gauge(
        "terrace_poisoned",
        None,
        "1 once the store refuses writes until it is opened again.",
        Monitor(&[], |monitor, series| monitor.poisoned(series)),
    ),
    counter(
        "terrace_events_lost_total",
        Count,
        "Events that the store's listener missed because it was too slow.",
        Monitor(&[], |monitor, series| monitor.lost(series)),
    ),
];
