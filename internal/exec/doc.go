// Package exec is the room for running commands that nobody trusts.
//
// Sub-rooms: supervisor (runs a command so that nothing of it survives), sandbox (what a command may reach on this
// machine), egress (the proxy that is the only way out of a sandbox), llmproxy (the endpoint at which an agent's
// program speaks to its model), usage (what a model's answer cost).
//
// Start at supervisor.Supervisor, then sandbox.Make.
//
// Nothing here knows what a command is for, decides about a loop, or runs git. The sandbox a loop gets is put
// together in activities/workspace.
package exec
