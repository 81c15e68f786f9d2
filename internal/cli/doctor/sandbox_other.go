//go:build !linux

package doctor

// sandbox has nothing to try: bubblewrap, Landlock and user namespaces exist on Linux only.
func sandbox() []Row {
	return []Row{{Name: "sandbox", Status: Note, What: "agents can be confined on Linux only", Fix: "Run pawl in a container or a virtual machine if you do not trust an agent."}}
}
