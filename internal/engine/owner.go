package engine

import (
	"os"
	"os/user"
	"strconv"
	_ "unsafe" // for go:linkname
)

// processOwner is the function by which OpenTelemetry, in the server, names the user of this process. The server does not start
// if that fails, as it does for a user without an entry in /etc/passwd, which is usual in containers. Neither has an option
// for it.
//
//go:linkname processOwner go.opentelemetry.io/otel/sdk/resource.owner
var processOwner func() (*user.User, error)

func init() {
	lookup := processOwner
	processOwner = func() (*user.User, error) {
		if u, err := lookup(); err == nil {
			return u, nil
		}
		return &user.User{Username: "uid " + strconv.Itoa(os.Getuid())}, nil
	}
}
