//! A machine in memory, with power cuts, faults and virtual time.
