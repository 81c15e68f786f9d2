// Package workercomponent is the part of auto-scaled workers in the server's worker service: nothing.
package workercomponent

import "go.uber.org/fx"

// Module provides nothing.
var Module = fx.Options()
