package govern

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Secret is something in a change that looks like a credential. It never says what the credential
// is: violations are shown, recorded and pushed.
type Secret struct {
	Path string
	Line int
	Kind string // "a GitHub token"
}

// format is a kind of credential that is known by how it looks. hint is a text that is in every one
// of them, so that most lines are not held against the expression at all; the first group, or else
// the match, is the credential. random says that it must also look as if it were made by chance.
type format struct {
	kind   string
	hint   string
	find   *regexp.Regexp
	random bool
}

// formats are those that people really leave in code. A secret blocks a loop until a person comes,
// so what could as well be something else is not among them.
var formats = []format{
	{"a private key", "PRIVATE KEY", regexp.MustCompile(`-----BEGIN (?:[A-Z]+ ){0,2}PRIVATE KEY(?: BLOCK)?-----`), false},
	{"an AWS access key", "AKIA", regexp.MustCompile(`\b(AKIA[A-Z2-7]{16})\b`), false},
	{"an AWS access key", "ASIA", regexp.MustCompile(`\b(ASIA[A-Z2-7]{16})\b`), false},
	{"a GitHub token", "gh", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36,255})\b`), false},
	{"a GitHub token", "github_pat_", regexp.MustCompile(`\b(github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b`), false},
	{"a GitLab token", "glpat-", regexp.MustCompile(`\b(glpat-[A-Za-z0-9_-]{20,})`), false},
	{"a Slack token", "xox", regexp.MustCompile(`\b(xox[abeoprs]-[0-9]{8,}-[0-9A-Za-z-]{10,})`), false},
	{"a Slack webhook", "hooks.slack.com", regexp.MustCompile(`hooks\.slack\.com/services/(T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,})`), false},
	{"a Stripe key", "_live_", regexp.MustCompile(`\b([sr]k_live_[0-9A-Za-z]{20,})`), false},
	{"a Google API key", "AIza", regexp.MustCompile(`\b(AIza[0-9A-Za-z_-]{35})`), false},
	{"a Google client secret", "GOCSPX-", regexp.MustCompile(`\b(GOCSPX-[0-9A-Za-z_-]{28})`), false},
	{"an Anthropic API key", "sk-ant-", regexp.MustCompile(`\b(sk-ant-[a-z]+[0-9]{2}-[A-Za-z0-9_-]{60,})`), false},
	{"an OpenAI API key", "sk-", regexp.MustCompile(`\b(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}|sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})`), false},
	{"a Hugging Face token", "hf_", regexp.MustCompile(`\b(hf_[A-Za-z]{34})\b`), false},
	{"an npm token", "npm_", regexp.MustCompile(`\b(npm_[A-Za-z0-9]{36})\b`), false},
	{"a PyPI token", "pypi-", regexp.MustCompile(`\b(pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,})`), false},
	{"a SendGrid key", "SG.", regexp.MustCompile(`\b(SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43})`), false},
	{"a DigitalOcean token", "_v1_", regexp.MustCompile(`\b(do[opr]_v1_[a-f0-9]{64})\b`), false},
	{"a JSON web token", "eyJ", regexp.MustCompile(`\b(eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,})`), false},
	{"a bearer token", "earer ", regexp.MustCompile(`\b[Bb]earer ([A-Za-z0-9._~+/=-]{20,})`), true},
	{"a URL with a password", "://", regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^\s/:@'"]*:([^\s/:@'"]{10,})@[A-Za-z0-9]`), true},
}

// SecretScan looks for secrets in the lines of a change. One that only moves, since the change
// takes the same away elsewhere, is not new.
type SecretScan struct {
	found []foundSecret
	gone  map[string]int
}

type foundSecret struct {
	Secret
	text string
}

// maxSecrets bounds what is remembered of a change that is full of them.
const maxSecrets = 1000

// Line takes one line, or piece of one, that the change adds or takes away.
func (s *SecretScan) Line(path string, n int, added bool, text string) {
	for _, f := range credentials(text) {
		switch {
		case !added && len(s.gone) < maxSecrets:
			if s.gone == nil {
				s.gone = map[string]int{}
			}
			s.gone[f.text]++
		case added && len(s.found) < maxSecrets:
			f.Path, f.Line = path, n
			s.found = append(s.found, f)
		}
	}
}

// Secrets returns those that are new, in the order of the change.
func (s *SecretScan) Secrets() []Secret {
	var out []Secret
	gone := maps.Clone(s.gone)
	for _, f := range s.found {
		if gone[f.text] > 0 {
			gone[f.text]--
			continue
		}
		if n := len(out); n > 0 && out[n-1].Path == f.Path && out[n-1].Line == f.Line {
			continue // one per line says it
		}
		out = append(out, f.Secret)
	}
	return out
}

// credentials finds what looks like a credential in a line.
func credentials(line string) []foundSecret {
	var out []foundSecret
	for _, f := range formats {
		if !strings.Contains(line, f.hint) {
			continue
		}
		for _, m := range f.find.FindAllStringSubmatch(line, -1) {
			if text := m[len(m)-1]; !placeholder(text) && (!f.random || random(text)) {
				out = append(out, foundSecret{Secret{Kind: f.kind}, text})
			}
		}
	}
	return append(out, assigned(line)...)
}

// assigned finds values that look made by chance and are given to a name that says what they are:
// in quotes anywhere (password = "…", "apiKey": "…", token := '…'), bare only in a setting that has
// the line to itself (SECRET_KEY=…), since in code that is another name.
func assigned(line string) []foundSecret {
	var out []foundSecret
	for i := 1; i < len(line); i++ {
		if line[i] != '=' && line[i] != ':' || len(line)-i < leastSecret {
			continue
		}
		value := strings.TrimLeft(line[i+1:], "=> \t")
		if value == "" {
			break
		}
		left := strings.TrimRight(line[:i], ": \t\"'`")
		name := left[strings.LastIndexFunc(left, notInName)+1:]
		if !secretName(name) {
			continue
		}
		kind := "a secret in quotes"
		switch quote := value[0]; quote {
		case '"', '\'', '`':
			end := strings.IndexByte(value[1:], quote)
			if end < 0 {
				continue
			}
			value = value[1 : 1+end]
		default:
			kind = "a secret in a setting"
			before := strings.TrimSpace(strings.TrimSuffix(left, name))
			value, _, _ = strings.Cut(value, " #")
			value = strings.TrimSpace(value)
			if (before != "" && before != "export" && before != "-") || strings.ContainsFunc(value, notInSetting) {
				continue
			}
		}
		if len(value) >= leastSecret && !strings.ContainsFunc(value, notInSecret) && !placeholder(value) && random(value) {
			out = append(out, foundSecret{Secret{Kind: kind}, value})
		}
	}
	return out
}

// leastSecret is how long a value is at least that is known by its name alone.
const leastSecret = 20

func among(set string) func(rune) bool {
	return func(r rune) bool {
		return !letter(r) && (r < '0' || r > '9') && !strings.ContainsRune(set, r)
	}
}

// What ends a name, a value that stands bare, a value at all.
var (
	notInName    = among("_-.")
	notInSetting = among("+/=_-")
	notInSecret  = among("+/=_.~!@#$%^&*-")
)

// secretName reports whether a name says that what it has is a secret: client_secret, DB_PASSWORD,
// accessKeyId; not tokenizer, secretName, passwordHash.
func secretName(name string) bool {
	if len(name) > 100 {
		return false
	}
	name = strings.ToLower(joined.Replace(name))
	for _, suffix := range []string{"", "keybase", "key", "id", "value", "base64"} {
		stem, ok := strings.CutSuffix(name, suffix)
		if ok && slices.ContainsFunc(secretWords, func(w string) bool { return strings.HasSuffix(stem, w) }) {
			return true
		}
	}
	return false
}

var (
	joined      = strings.NewReplacer("_", "", "-", "", ".", "")
	secretWords = []string{"secret", "password", "passwd", "passphrase", "token", "apikey", "privatekey", "accesskey", "authkey", "credential", "credentials"}
)

// placeholders are in what documentation and tests put where a secret would be.
var placeholders = []string{"example", "placeholder", "changeme", "change-me", "change_me", "your", "xxxx", "dummy", "redacted", "****", "....", "0123456789", "123456789", "abcdef"}

func placeholder(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(placeholders, func(p string) bool { return strings.Contains(text, p) })
}

var (
	uuid  = regexp.MustCompile(`(?i)^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	wordy = regexp.MustCompile(`^(?:[A-Za-z]{0,15}[0-9]{0,4}|[a-z]*(?:[A-Z][a-z]+)+[0-9]{0,4})$`)
	hex   = regexp.MustCompile(`^[0-9a-fA-F]+$`)
)

// random reports whether a text looks as if it were made by chance: letters and digits, no words
// or names, and about as much information in it as there can be.
func random(text string) bool {
	if !strings.ContainsAny(text, "0123456789") || !strings.ContainsFunc(text, letter) || uuid.MatchString(text) {
		return false
	}
	if strings.ContainsAny(text, "$%") { // $NAME, %NAME%: a place where one is put in
		return false
	}
	words := true
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("-_./=+~:", r) }) {
		words = words && wordy.MatchString(part)
	}
	least := 3.5
	if hex.MatchString(text) {
		least = 3.1 // there is no more in hex
	}
	if len(text) < 20 {
		least = 2.9
	}
	return !words && entropy(text) >= least
}

func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// entropy is the information in each byte of a text by the frequencies in the text itself, in bits.
func entropy(text string) float64 {
	var n [256]int
	for i := range len(text) {
		n[text[i]]++
	}
	bits := 0.0
	for _, k := range n {
		if k > 0 {
			p := float64(k) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
