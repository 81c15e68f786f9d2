// Package option has the one option that the server gives to Google's clients.
package option

import "golang.org/x/oauth2"

// ClientOption is of no effect.
type ClientOption any

// WithTokenSource is of no effect.
func WithTokenSource(oauth2.TokenSource) ClientOption { return nil }
