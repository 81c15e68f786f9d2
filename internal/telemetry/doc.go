// Package telemetry shows what pawl does: as metrics at a Prometheus endpoint, and as traces for an OpenTelemetry
// receiver. It is off by default, and the methods of a nil *Telemetry do nothing.
//
// Sub-room: span (a loop's events as spans; pure).
//
// Start at Start, then Appended.
//
// It never decides anything and never delays a loop: it drops what it can't deliver. None of it runs in a workflow:
// it learns of loops from the events that activities append to their ledgers.
package telemetry
