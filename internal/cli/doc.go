// Package cli is pawl's command line: it starts loops and follows them, shows what they do, and carries people's
// messages to them.
//
// Sub-rooms: render (all that is printed), doctor (the checks of pawl doctor), scaffold (the spec that pawl init
// writes), demo (the demos of pawl demo).
//
// Each command has a file with its name (approve.go, steward_stop.go), in which are its options, its cobra command and
// its run function: read these three and you know it. The parts of a larger command have its name before theirs
// (run_first_spec.go, follow_end.go). What several commands share: command.go (how they are wrapped), message.go (how
// a message is sent), ask.go (questions at a terminal), follow.go (a loop to its end), session.go (finding Temporal),
// worker.go (this process's worker), arguments.go, output.go, errors.go and exit.go. Start at Execute in cli.go, which
// the root program and the starter call, or at Serve, which the worker calls.
//
// It never decides what a message does or when a loop ends (internal/loop/rules does, in the workflow), never works
// on a repository, and reaches loops only through internal/client. It does not know the embedded engine: the program
// that links the engine passes it in (Deps.Embedded), so the worker and the starter need no server.
package cli
