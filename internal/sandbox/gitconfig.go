package sandbox

import (
	"regexp"
	"slices"
	"strings"
)

// harmlessSettings are keys of git's settings that say who somebody is and how git behaves. None names a server, a
// program or a credential; those are for pawl's own git alone, outside of the sandbox.
var harmlessSettings = strings.Fields(`
	user.name user.email user.useconfigonly init.defaultbranch safe.directory color.ui column.ui
	core.autocrlf core.eol core.safecrlf core.quotepath core.ignorecase core.filemode core.symlinks core.precomposeunicode
	core.abbrev core.whitespace core.longpaths core.excludesfile core.attributesfile
	pull.rebase pull.ff push.default push.autosetupremote merge.conflictstyle merge.ff rebase.autostash rebase.autosquash
	diff.algorithm diff.renames diff.colormoved diff.mnemonicprefix rerere.enabled branch.sort tag.sort log.date status.short
`)

var (
	section = regexp.MustCompile(`^\s*\[([A-Za-z0-9.-]+)(\s+"(?:[^"\\]|\\.)*")?\]\s*(.*)$`)
	setting = regexp.MustCompile(`^\s*([A-Za-z][A-Za-z0-9-]*)\s*(=.*)?$`)
)

// gitSettings returns those of git's settings that are harmless, in git's own form.
func gitSettings(text string) string {
	var out strings.Builder
	in, continues := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		part := continues // of a value that goes on: it goes, or went, with the line before
		continues = strings.HasSuffix(line, `\`)
		if part {
			continue
		}
		if m := section.FindStringSubmatch(line); m != nil {
			in, line = strings.ToLower(m[1]), m[3]
			if m[2] != "" { // of one remote, one server, one filter
				in = ""
			}
		}
		m := setting.FindStringSubmatch(line)
		if m == nil || continues || !slices.Contains(harmlessSettings, in+"."+strings.ToLower(m[1])) {
			continue
		}
		out.WriteString("[" + in + "]\n\t" + strings.TrimSpace(line) + "\n")
	}
	return out.String()
}
