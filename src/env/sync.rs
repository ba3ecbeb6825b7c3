//! Locks and waiting that the simulator can schedule.
