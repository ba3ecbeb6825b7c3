//! Workloads and reports for Terrace.
