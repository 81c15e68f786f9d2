package secretscan

import (
	"slices"
	"strings"
)

// assigned finds values that look random and are assigned to a name that says that they are secret. It finds them in
// quotes anywhere (password = "…", "apiKey": "…", token := '…'). Without quotes it finds them only in a setting on
// its own line (SECRET_KEY=…) or in an assignment to a variable in capitals, because a word without quotes in code is
// mostly another name.
func assigned(line string) (out []Found) {
	end, room := 0, maxAssigned // end is that of the name before line[i]
	for i := 1; i < len(line); i++ {
		if strings.IndexByte(": \t\"'`", line[i-1]) < 0 {
			end = i
		}
		if line[i] != '=' && line[i] != ':' || len(line)-i < leastPassword {
			continue
		}
		left := line[:end]
		name := left[max(0, end-maxSecretName-1):]
		if name = name[strings.LastIndexFunc(name, notInName)+1:]; !secretName(name) {
			continue
		}
		value := strings.TrimLeft(line[i+1:], "=> \t")
		if value == "" {
			break
		}
		kind, start := "a secret in quotes", len(line)-len(value)
		switch quote := value[0]; quote {
		case '"', '\'', '`':
			end := strings.IndexByte(value[1:], quote)
			if end < 0 {
				continue
			}
			start, value = start+1, value[1:1+end]
		default:
			kind = "a secret in a setting"
			before := strings.TrimSpace(strings.TrimSuffix(left, name))
			if shouts(name) && strings.HasPrefix(line[i+1:], value) && line[i] == '=' { // in the middle of a command, as in -e DB_PASSWORD=…
				value, _, _ = strings.Cut(value, " ")
			} else if before != "" && before != "export" && before != "-" {
				continue
			}
			value, _, _ = strings.Cut(value, " #")
			value = strings.TrimSpace(value)
			if room -= len(value); room < 0 {
				return out
			}
			if strings.ContainsFunc(value, notInSetting) && !(strings.ContainsAny(value, "!@#$%^&*") && password(value)) {
				continue
			}
		}
		byChance := len(value) >= leastSecret && !strings.ContainsFunc(value, notInSecret) && random(value) ||
			!strings.ContainsFunc(value, notPassword) && password(value)
		if byChance && !placeholder(value) {
			out = append(out, Found{kind, start, start + len(value), value})
		}
	}
	return out
}

// leastSecret is the length in bytes from which a random value counts as a secret. leastPassword is the length for
// passwords.
const (
	leastSecret   = 20
	leastPassword = 12
)

// maxSecretName is the length of the longest name that is looked at. maxAssigned is how many bytes of values without quotes
// are looked at in a line. Such values can overlap, and an agent may write any line.
const (
	maxSecretName = 100
	maxAssigned   = 1 << 20
)

func among(set string) func(rune) bool {
	return func(r rune) bool {
		return !letter(r) && (r < '0' || r > '9') && !strings.ContainsRune(set, r)
	}
}

// The characters that end a name, a value without quotes, a random value and a password.
var (
	notInName    = among("_-.")
	notInSetting = among("+/=_-")
	notInSecret  = among("+/=_.~!@#$%^&*-")
	notPassword  = among("+/=_.~!@#$%^&*-?,;:")
)

// secretName reports whether a name says that its value is a secret: client_secret, DB_PASSWORD and accessKeyId do;
// tokenizer, secretName and passwordHash do not.
func secretName(name string) bool {
	if len(name) > maxSecretName {
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
	secretWords = []string{"secret", "password", "passwd", "passphrase", "token", "apikey", "privatekey", "accesskey", "authkey", "masterkey", "signingkey", "encryptionkey", "accountkey", "credential", "credentials"}
)

// shouts reports whether a name is written like an environment variable: capitals with an underscore.
func shouts(name string) bool { return name == strings.ToUpper(name) && strings.Contains(name, "_") }
