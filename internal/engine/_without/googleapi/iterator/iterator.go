// Package iterator has the one name of Google's package that the server uses.
package iterator

import "errors"

// Done would be the end of a list.
var Done = errors.New("no more items in iterator")
