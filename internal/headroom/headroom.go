// Package headroom lets a program start without collecting garbage. What the embedded server's packages initialise is eight
// megabytes before main begins, and Go would collect three times on the way there, though nearly all of it lives.
// It is imported by the program for its effect. It imports nothing, so that it comes first.
package headroom

// slack counts as much as lives, so that the first collection is due at twice its size. It is never written to and
// takes no memory.
var slack = make([]byte, 16<<20)

// Release makes the program collect its garbage as any other from the next collection on.
func Release() { slack = nil }
