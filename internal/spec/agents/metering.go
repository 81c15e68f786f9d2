package agents

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/lib/must"
)

// Metering says how a program is made to call pawl's meter, not its provider. The zero value: it can't be.
type Metering struct {
	Base string // the variable with its provider's base URL
	At   string // the base URL if that variable is not set
	Keys []Key  // the variables with a key for which each request is paid; the first one that is set counts
	// Args are further arguments that it needs. In them {base} is the base URL, and {key} the name of the variable.
	Args []string
	// Env are further variables that it needs, with the same placeholders. If a person sets one of them, the program
	// calls another provider.
	Env []string
	// Secrets are the keys of its settings that may contain a key to sign in with, which the program no longer needs.
	// They are dotted, and * is any part.
	Secrets []string
	// ByModel replaces these fields if the name of its model decides its provider.
	ByModel *ByModel
	// Elsewhere are variables and parts of arguments by which a person makes it call another provider than that of
	// Base.
	Elsewhere []string
	// Others are the settings in the user's home that do the same.
	Others []Settings
	// Chosen are the settings in the user's home that choose how it signs in. Choice is their value if it signs in
	// with one of Keys. ChosenBy is the argument that says the same, "" for none. Chosen is nil if the program uses
	// any key that it finds.
	Chosen           []Settings
	Choice, ChosenBy string
}

// Key is a variable with a key. If the file Yields exists in the home, the program signs in with that instead.
type Key struct{ Name, Yields string }

// Route says where a program's meter sends its requests, and what the program needs to find the meter.
type Route struct {
	Upstream string
	Keys     []string // the variables with a key
	// Secret is the key if it is in the program's own settings, "" if a variable has it.
	Secret string
	Args   []string // like Metering.Args, with the variable's name filled in
	// Env are variables, and Files are files by their names. In both {base} is the base URL and {key} a key. In a
	// variable {dir} is the folder of the files.
	Env   []string
	Files map[string]string
}

// Meterable reports whether pawl can make the program call its meter.
func (m Metering) Meterable() bool { return m.Base != "" || m.ByModel != nil }

// KeyNames returns the variables that may have its key, if they do not depend on the name of its model.
func (m Metering) KeyNames() (variables []string) {
	return list.Map(m.Keys, func(key Key) string { return key.Name })
}

// Public returns a JSON document of the program's settings without the Secrets.
func (m Metering) Public(settings string) string {
	var values map[string]any
	if len(m.Secrets) == 0 || json.Unmarshal([]byte(settings), &values) != nil {
		return settings
	}
	for _, key := range m.Secrets {
		drop(values, key)
	}
	return string(must.Have(json.Marshal(values))) // it was JSON
}

// Direction returns the route of a program with an environment, arguments and a model. Without a route, reason is the
// rest of a sentence that begins with the program's name. read returns a file of the user's home, nil if it does not
// exist.
func (m Metering) Direction(env map[string]string, args []string, model string, read func(file string) []byte) (r Route, reason string) {
	if !m.Meterable() {
		return r, "can't use pawl's meter"
	}
	elsewhere := m.Elsewhere
	for _, variable := range m.Env {
		name, _, _ := strings.Cut(variable, "=")
		elsewhere = append(slices.Clip(elsewhere), name)
	}
	for _, word := range elsewhere {
		if env[word] != "" || strings.Contains(strings.Join(args, "\x00"), word) {
			return r, "is told to speak to another provider (" + word + ")"
		}
	}
	for _, s := range m.Others {
		if s.Of(read(s.File)) != "" {
			return r, "has a provider in its settings (~/" + s.File + ")"
		}
	}
	if m.ByModel != nil {
		return m.ByModel.direction(env, model, read)
	}
	for _, key := range m.Keys {
		if env[key.Name] != "" && (len(r.Keys) > 0 || key.Yields == "" || read(key.Yields) == nil) {
			r.Keys = append(r.Keys, key.Name)
		}
	}
	if len(r.Keys) == 0 {
		return Route{}, noKey
	}
	if len(m.Chosen) > 0 && !m.chosen(args, read) {
		return Route{}, "is not set to sign in with a key"
	}
	r.Upstream = cmp.Or(env[m.Base], m.At)
	named := func(text string) string { return strings.ReplaceAll(text, "{key}", r.Keys[0]) }
	r.Args = list.Map(m.Args, named)
	r.Env = append([]string{m.Base + "={base}"}, list.Map(m.Env, named)...)
	return r, ""
}

const noKey = "signs in with an account of its own, and no key is in its environment"

// chosen reports whether an argument or one of the settings makes the choice.
func (m Metering) chosen(args []string, read func(string) []byte) bool {
	for i, arg := range args {
		if m.ChosenBy != "" && (arg == m.ChosenBy+"="+m.Choice || arg == m.ChosenBy && i+1 < len(args) && args[i+1] == m.Choice) {
			return true
		}
	}
	for _, s := range m.Chosen {
		var document any
		_ = json.Unmarshal([]byte(s.Of(read(s.File))), &document)
		if within(document, m.Choice) {
			return true
		}
	}
	return false
}

// within reports whether a text is one of the values of a JSON document.
func within(value any, text string) bool {
	switch v := value.(type) {
	case string:
		return v == text
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), func(inner any) bool { return within(inner, text) })
	}
	return false
}

// ByModel is for a program that finds its provider by the first part of its model's name, such as
// anthropic/claude-sonnet-4-5. It knows some providers, and its settings may add more. Pawl gives it settings with a
// single provider, the meter.
type ByModel struct {
	Known []Provider
	// Files are files of the home with further providers, by their names, under the key In. Base and Secret are the
	// dotted keys of a provider's base URL and key in them.
	Files            []string
	In, Base, Secret string
	// Model is the key in Files of the model to use if none is named, "" for none.
	Model string
	// Accounts is the file with accounts by provider, which the program prefers to a key.
	Accounts string
	// Content is the variable for settings as text, which the program merges with those of Files. If there is none,
	// Folder is the variable of the folder in which it looks for a file with the base name of Files[0].
	Content, Folder string
}

// Provider is a provider that a program knows: its address, and the variables that may have its key.
type Provider struct {
	Name, At string
	Keys     []string
}

func (m ByModel) direction(env map[string]string, model string, read func(string) []byte) (r Route, reason string) {
	var settings []map[string]any
	for _, file := range m.Files {
		var values map[string]any
		_ = json.Unmarshal(uncommented(read(file)), &values) // a file that is not JSON has no settings
		settings = append(settings, values)
		if named, ok := values[m.Model].(string); ok && model == "" {
			model = named
		}
	}
	name, _, ok := strings.Cut(model, "/")
	if !ok {
		return r, "is not told by agent.model which provider it speaks to (provider/model)"
	}
	var accounts map[string]any
	if text := read(m.Accounts); text != nil && json.Unmarshal(text, &accounts) != nil || accounts[name] != nil {
		return r, "signs in to " + name + " with what is in ~/" + m.Accounts
	}
	configured := map[string]any{}
	for _, values := range settings {
		providers, _ := values[m.In].(map[string]any)
		if provider, ok := providers[name].(map[string]any); ok {
			configured = provider
		}
	}
	var keys []string
	if i := slices.IndexFunc(m.Known, func(p Provider) bool { return p.Name == name }); i >= 0 {
		r.Upstream, keys = m.Known[i].At, m.Known[i].Keys
	}
	if r.Upstream = cmp.Or(textAt(configured, m.Base), r.Upstream); r.Upstream == "" {
		return Route{}, "speaks to " + name + ", whose address pawl does not know"
	}
	switch secret := textAt(configured, m.Secret); {
	case strings.HasPrefix(secret, "!"), strings.HasPrefix(secret, "{file:"):
		return Route{}, "gets the key of " + name + " by its settings (" + m.Secret + ")"
	case strings.HasPrefix(secret, "{env:"):
		keys = []string{strings.TrimSuffix(strings.TrimPrefix(secret, "{env:"), "}")}
	case env[secret] != "":
		keys = []string{secret}
	default:
		r.Secret = secret
	}
	if r.Secret == "" {
		i := slices.IndexFunc(keys, func(name string) bool { return env[name] != "" })
		if i < 0 {
			return Route{}, noKey
		}
		r.Keys = keys[i : i+1]
	}
	m.lead(&r, name, configured)
	return r, ""
}

// lead adds the settings that make a program call the meter to the route.
func (m ByModel) lead(r *Route, name string, settings map[string]any) {
	provider := map[string]any{}
	if m.Content == "" { // it reads no other settings
		provider = settings
	}
	put(provider, m.Base, "{base}")
	put(provider, m.Secret, "{key}")
	b := must.Have(json.Marshal(map[string]any{m.In: map[string]any{name: provider}})) // it was JSON
	if m.Content != "" {
		r.Env = []string{m.Content + "=" + string(b)}
		return
	}
	r.Env = []string{m.Folder + "={dir}"}
	r.Files = map[string]string{m.Files[0][strings.LastIndexByte(m.Files[0], '/')+1:]: string(b)}
}

// at returns the value at a dotted key of a JSON object.
func at(values map[string]any, key string) (value any, ok bool) {
	first, rest, hasMore := strings.Cut(key, ".")
	if hasMore {
		inner, _ := values[first].(map[string]any)
		return at(inner, rest)
	}
	value, ok = values[first]
	return value, ok
}

// textAt returns the text at a dotted key, "" if there is none.
func textAt(values map[string]any, key string) string {
	value, _ := at(values, key)
	text, _ := value.(string)
	return text
}

// put sets the value at a dotted key.
func put(values map[string]any, key string, value any) {
	first, rest, hasMore := strings.Cut(key, ".")
	if !hasMore {
		values[first] = value
		return
	}
	inner, ok := values[first].(map[string]any)
	if !ok {
		inner = map[string]any{}
		values[first] = inner
	}
	put(inner, rest, value)
}

// drop removes the value at a dotted key, in which * is any part.
func drop(values map[string]any, key string) {
	first, rest, hasMore := strings.Cut(key, ".")
	for name, value := range values {
		if inner, ok := value.(map[string]any); (first == "*" || first == name) && hasMore && ok {
			drop(inner, rest)
		} else if first == name && !hasMore {
			delete(values, name)
		}
	}
}
