// Package steward is the machine of a steward (S): its state, the events that change it, its transition table with
// the evidence for each transition, and every decision: what a message does and what happens next.
//
// Sub-rooms: api (what its activities get and return), charter (the spec of a steward), task (tasks, plans, steps,
// actions as data), delivery (what a trigger received, as data), risk (tier and estimate of a task), stuck (does a task
// go in circles?), statusfile (STATUS_LEDGER.md and LAST_KNOWN_STATE.md).
//
// Start at State, then Apply (what events do), Next (what to do) and Answer (what people say).
//
// Everything here is pure; it knows no Temporal, no repository and no clock. workflows/steward carries the decisions
// out, activities/steward touches the world.
package steward
