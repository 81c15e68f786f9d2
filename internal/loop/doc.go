// Package loop defines a loop: its state, the events that change it, and the fold that applies them. One struct is
// workflow state, continue-as-new input, ledger snapshot, query answer and restore format. Only Apply changes it, so
// the state is always the fold of the events (A9).
//
// Sub-rooms: rules (every decision of a loop), api (the inputs and results of activities), result (the class of an
// agent's call).
//
// Start at State, then Event, then Apply. For "why did the loop do that?" start at rules.
//
// Everything here is pure: no Temporal, no file, no process, no clock. This package decides nothing; rules and
// internal/metric do. workflows/loop carries the decisions out.
package loop
