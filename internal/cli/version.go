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
	built, _ := debug.ReadBuildInfo()
	info := cmp.Or(built, &debug.BuildInfo{})
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
	root.Flags().BoolVar(&a.asked, "version", false, "print the version of this build")
	return root
}

// printVersion prints the version in place of what a command does, also of what it does before, such as refusing settings.
func (a *app) printVersion() error {
	v := a.version()
	if err := a.output(v, fmt.Sprintf("%s %s (%s, %s)", v.Program, v.Version, v.Go, v.Platform)); err != nil {
		return err
	}
	return &leaving{code: exitOK}
}
