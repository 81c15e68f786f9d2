package sandbox

// Deed is what a Question asks for.
type Deed string

// The deeds. A target is a path or "host:port".
const (
	Reading    Deed = "read"
	Writing    Deed = "write"   // changes nothing: it opens what is there, or makes and removes a file in a folder
	Connecting Deed = "connect" // by TCP, in every way that Linux has for it
	Through    Deed = "through" // to connect by way of the proxy
	Asking     Deed = "ask"     // an engine or its UI, as somebody without its token
	Dialing    Deed = "dial"    // to a Unix socket
	Mingling   Deed = "mingle"  // to see processes of others, as one of one table
	Outgrowing Deed = "outgrow" // a limit of memory or processes, by a small one of the kind; the supervisor tries it
	Calling    Deed = "call"    // a system call that no build needs (io_uring, keyrings)
)

// Question is something that a sandbox is to be asked by trying it.
type Question struct {
	Deed   Deed
	Target string
}

// Finding is what came of it.
type Finding struct {
	Question
	Done bool // it worked
}
