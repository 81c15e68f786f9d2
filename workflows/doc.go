// Package workflows is the room for the Temporal workflows. They sequence; what they do next is decided in
// internal/loop/rules and internal/steward.
//
// Sub-rooms: loop (Improve, Deliver, Apply, Review), steward (Steward, Submit), and what both share: journal (events
// fold into state), gates (messages, waiting, escalation), placement (on which host activities run), display (what
// the Temporal UI shows, and whom a workflow notifies).
//
// Start at loop/main.go for a loop, at steward/steward.go for a steward.
//
// Code here is replayed: no file, process, network, clock or chance. The shared parts know no kind of workflow.
package workflows
