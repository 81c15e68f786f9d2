// Package cli is pawl's command line: it starts loops and follows them, shows what they do, and carries people's
// messages to them.
//
// Sub-rooms: render (all that is printed), doctor (the checks of pawl doctor), scaffold (the spec that pawl init
// writes), demo (the demos of pawl demo).
//
// The files are named after what a person does: start_ (start, run, demo, follow a loop to its end), answer_
// (messages, questions, apply), look_ (list, show, watch, log, diff, report, inbox), steward_ (the same for stewards)
// and house_ (init, validate, doctor, up, clean). Start at Execute, which the root program and the starter call, or
// at Serve, which the worker calls. session.go says how a command finds Temporal, and exit.go explains the exit
// codes.
//
// It never decides what a message does or when a loop ends (internal/loop/rules does, in the workflow), never works
// on a repository, and reaches loops only through internal/client. It does not know the embedded engine: the program
// that links the engine passes it in (Deps.Embedded), so the worker and the starter need no server.
package cli
