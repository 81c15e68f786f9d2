package scaffold

import (
	"fmt"
	"path"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// page reports whether a file is Markdown.
func page(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".md" || ext == ".markdown"
}

const everyPage = `find . \( -name '*.md' -o -name '*.markdown' \) -type f -not -path './.git/*'`

// fenced is a sed command that deletes fenced blocks of code.
const fenced = "/^ *```/,/^ *```/d"

// link matches a Markdown link to a file: not to an address, not to an anchor, and without a title.
var link = lazyregexp.New(`\]\(([^):# <>]+)[#)]`)

// everyDeadLink is a command that prints a line for each link to a file that does not exist.
const everyDeadLink = everyPage + ` | while read -r f; do sed -e '` + fenced + `' -e 's/` + "`[^`]*`" + `//g' "$f" | grep -oE '\]\([^):# <>]+[#)]' | sed 's/^..//; s/.$//' | ` +
	`while read -r l; do [ -e "$(dirname "$f")/$l" ] || echo "$f: $l leads nowhere"; done; done`

// docs returns a metric for pages: the number of dead links if there are any, else the average length of a sentence. Its
// guard refuses a change that takes away what the pages say.
func (t tree) docs() Metric {
	const other = "; replace this with what you want to improve"
	words := 0
	for _, name := range t.files {
		if page(name) {
			words += len(strings.Fields(t.read(name)))
		}
	}
	minimum := words * 4 / 5
	guard := fmt.Sprintf(`w=$(%s -exec cat {} + | wc -w); [ "$w" -ge %d ] || { echo "the pages have $w words left; they have to keep %d"; exit 1; }`, everyPage, minimum, minimum)
	dead, out := t.deadLinks()
	if dead > 0 {
		return Metric{
			Goal: "Fix the links to files that do not exist", Direction: lower, Timeout: "1m", Why: "links in the pages to files that do not exist" + other,
			Command: everyDeadLink + ` | wc -l | awk '{print "METRIC dead_links=" $1}'`,
			Guard:   guard,
		}
	}
	if !out {
		guard += "; ! " + everyDeadLink + " | grep ."
	}
	return Metric{
		Goal: "Make the pages easier to read: shorter sentences that say the same", Direction: lower, Timeout: "30s", Why: "words in a sentence, on average" + other,
		Command: everyPage + ` -exec sed -e '` + fenced + `' {} + | awk '{w += NF; s += gsub(/[.!?]( |$)/, "")} END {printf "METRIC words_in_a_sentence=%.2f\n", w / (s ? s : 1)}'`,
		Guard:   guard,
	}
}

var code = lazyregexp.New("(?ms)^ *```.*?^ *```|`[^`\n]*`")

// deadLinks counts the links to files that do not exist. out reports whether others lead out of the repository.
func (t tree) deadLinks() (n int, out bool) {
	for _, name := range t.files {
		if !page(name) {
			continue
		}
		for _, m := range link().FindAllStringSubmatch(code().ReplaceAllString(t.read(name), ""), -1) {
			target := path.Join(path.Dir(name), m[1])
			switch {
			case strings.HasPrefix(target, ".."):
				out = true
			case !t.has[target] && len(t.under(strings.TrimSuffix(target, "/"))) == 0 && target != ".":
				n++
			}
		}
	}
	return n, out
}
