package sandbox

// Deed is what a Question asks for.
type Deed string

// The deeds. A target is a path or "host:port".
const (
	Reading    Deed = "read"
	Writing    Deed = "write"   // changes nothing: it opens what is there, or makes and removes a file in a folder
	Connecting Deed = "connect" // by TCP, in every way that Linux offers
	Through    Deed = "through" // connect through the proxy
	Asking     Deed = "ask"     // call an engine or its UI without its token
	Dialing    Deed = "dial"    // to a Unix socket
	Mingling   Deed = "mingle"  // see other programs' processes
	Outgrowing Deed = "outgrow" // exceed a limit of memory or processes; the supervisor tries it with a small one
	Calling    Deed = "call"    // make a system call that no build needs (io_uring, keyrings)
)

// Question is one thing to try in a sandbox.
type Question struct {
	Deed   Deed
	Target string
}

// Finding is the result of a Question.
type Finding struct {
	Question
	Done bool // it worked
}
