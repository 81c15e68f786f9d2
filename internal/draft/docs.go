package draft

import (
	"path"
	"slices"
	"strings"

	"pawl/internal/lazyregexp"
)

// pages reports whether the repository has Markdown pages.
func (t tree) pages() bool { return slices.ContainsFunc(t.files, page) }

func page(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".md" || ext == ".markdown"
}

const everyPage = `find . \( -name '*.md' -o -name '*.markdown' \) -type f -not -path './.git/*'`

// fenced is a sed command that deletes fenced blocks of code.
const fenced = "/^ *```/,/^ *```/d"

// link matches a Markdown link to a file: not to an address, not to an anchor, and without a title.
var link = lazyregexp.New(`\]\(([^):# <>]+)[#)]`)

// docs returns a metric for pages: the number of dead links if there are any, else the average length of a sentence.
func (t tree) docs() Metric {
	const other = "; replace this with what you want to improve"
	if t.deadLinks() > 0 {
		return Metric{
			Goal: "Fix the links to files that do not exist", Direction: lower, Timeout: "1m", Why: "links in the pages to files that do not exist" + other,
			Command: everyPage + ` | while read -r f; do sed -e '` + fenced + `' -e 's/` + "`[^`]*`" + `//g' "$f" | grep -oE '\]\([^):# <>]+[#)]' | sed 's/^..//; s/.$//' | ` +
				`while read -r l; do [ -e "$(dirname "$f")/$l" ] || echo x; done; done | wc -l | awk '{print "METRIC dead_links=" $1}'`,
		}
	}
	return Metric{
		Goal: "Make the pages easier to read: shorter sentences that say the same", Direction: lower, Timeout: "30s", Why: "words in a sentence, on average" + other,
		Command: everyPage + ` -exec sed -e '` + fenced + `' {} + | awk '{w += NF; s += gsub(/[.!?]( |$)/, "")} END {printf "METRIC words_in_a_sentence=%.2f\n", w / (s ? s : 1)}'`,
	}
}

var code = lazyregexp.New("(?ms)^ *```.*?^ *```|`[^`\n]*`")

// deadLinks counts the links to files that do not exist.
func (t tree) deadLinks() (n int) {
	for _, name := range t.files {
		if !page(name) {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(t.read(name), ""), -1) {
			to := path.Join(path.Dir(name), m[1])
			if !t.has[to] && len(t.under(strings.TrimSuffix(to, "/"))) == 0 && to != "." && !strings.HasPrefix(to, "..") {
				n++
			}
		}
	}
	return n
}
