package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is what `pawl --version --json` prints.
type Version struct {
	Program  string `json:"program"`
	Version  string `json:"version"`            // of the module, as Go made it from the repository; (devel) if Go did not look
	Revision string `json:"revision,omitempty"` // the commit that was built
	Modified bool   `json:"modified"`           // whether files differed from that commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// version returns what the Go build noted in this program.
func (a *app) version() Version {
	v := Version{Program: a.deps.Program, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	v.Version = cmp.Or(info.Main.Version, "(devel)")
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// versioned gives a root command the flag --version.
func (a *app) versioned(root *cobra.Command) *cobra.Command {
	var asked bool
	root.Flags().BoolVar(&asked, "version", false, "print the version of this build")
	show := func(do func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			if !asked {
				return do(cmd, args)
			}
			a.ran = true
			v := a.version()
			return a.output(v, fmt.Sprintf("%s %s (%s, %s)", v.Program, v.Version, v.Go, v.Platform))
		}
	}
	root.RunE = show(root.RunE)
	if before := root.PreRunE; before != nil { // it would refuse settings, which the version does not need
		root.PreRunE = func(cmd *cobra.Command, args []string) error {
			if asked {
				return nil
			}
			return before(cmd, args)
		}
	}
	return root
}
