//go:build !linux

package doctor

import "context"

// sandbox has nothing to try: bubblewrap, Landlock and user namespaces exist on Linux only.
func sandbox(context.Context) []Row {
	return []Row{{"sandbox", Note, "agents can be confined on Linux only", "Run pawl in a container or a virtual machine if you do not trust an agent."}}
}
