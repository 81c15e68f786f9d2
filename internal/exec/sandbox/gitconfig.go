package sandbox

import (
	"regexp"
	"slices"
	"strings"
)

// harmlessSettings are git settings about identity and behaviour. None names a server, a program or a credential; those
// settings are only for pawl's own git, outside the sandbox.
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

// gitSettings returns the harmless settings, in git's own format.
func gitSettings(text string) string {
	var out strings.Builder
	name, continues := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		part := continues // a continued value is kept or dropped with its first line
		continues = strings.HasSuffix(line, `\`)
		if part {
			continue
		}
		if m := section.FindStringSubmatch(line); m != nil {
			name, line = strings.ToLower(m[1]), m[3]
			if m[2] != "" { // a section about one remote, server or filter
				name = ""
			}
		}
		m := setting.FindStringSubmatch(line)
		if m == nil || continues || !slices.Contains(harmlessSettings, name+"."+strings.ToLower(m[1])) {
			continue
		}
		out.WriteString("[" + name + "]\n\t" + strings.TrimSpace(line) + "\n")
	}
	return out.String()
}
