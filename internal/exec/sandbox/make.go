package sandbox

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"pawl/internal/spec/agents"
)

// Request is the input for a policy: the policy without its places, and what they follow from.
type Request struct {
	Policy
	Home string   // $PAWL_HOME
	Repo string   // the user's repository
	Own  []string // writable parts of $PAWL_HOME: the command's tree, the exchange
	// Layers are the folders of the layers over caches and settings, the uppermost first; that one takes what the
	// command writes. Without any, what it writes is lost.
	Layers []string
	Env    []string // the command's environment
	Argv   []string // the command's arguments
	Agents []string // the programs of internal/spec/agents that it is or starts, by their names in the spec
	// Metered says that these programs reach their models through pawl's meter, which signs in. They get no
	// credentials.
	Metered bool
	Named   []string // texts of the spec whose absolute paths may be read: the command, values of agent.env
	// Allow is sandbox.allow: paths that the spec makes writable.
	Allow []string
	// Sealed can be read but not written, even inside Allow.
	Sealed []string
	// Secrets are files that nobody reads, wherever they are.
	Secrets []string
}

// system is what programs need of the machine and every user may read. Files in /etc and elsewhere that only root may
// read are hidden.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap", "/home/linuxbrew", "/run/current-system",
	"/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm",
}

// public lists the folders of system in which root's commands see only what everybody may read. The other folders
// contain only files of package managers, or are on file systems that can't make that difference.
var public = []string{"/etc", "/usr", "/opt"}

// devices are the devices without data.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// settings are kernel files through which root can change or inspect the machine. Containers hide the same ones.
var settings = []Place{
	{Path: "/proc/sys", Access: Read}, {Path: "/proc/sysrq-trigger", Access: Read}, {Path: "/proc/irq", Access: Read}, {Path: "/proc/bus", Access: Read},
	{Path: "/proc/fs", Access: Read},
	{Path: "/proc/kpageflags"}, {Path: "/proc/kpagecount"}, {Path: "/proc/kpagecgroup"}, {Path: "/proc/vmallocinfo"}, {Path: "/proc/slabinfo"},
	{Path: "/proc/kcore"}, {Path: "/proc/keys"}, {Path: "/proc/timer_list"}, {Path: "/proc/acpi"}, {Path: "/proc/scsi"}, {Path: "/proc/kmsg"},
}

// scratch are the folders that every command gets for itself.
var scratch = []string{"/tmp", "/var/tmp", "/dev/shm", "/run"}

// caches are folders of a home that builds fill and can fill again, with the programs that use them. A command has a
// layer over them, so what an agent puts there reaches nobody else.
var caches = []struct {
	programs []string
	folders  []string
}{
	{[]string{"go"}, []string{".cache/go-build", "go/pkg", ".cache/golangci-lint", ".cache/staticcheck", ".cache/goimports", ".cache/gopls"}},
	{[]string{"node", "npm"}, []string{".npm", ".cache/node", ".cache/yarn", ".yarn/berry", ".cache/pnpm", ".local/share/pnpm/store", ".cache/ms-playwright", ".cache/Cypress", ".cache/puppeteer"}},
	{[]string{"bun"}, []string{".bun/install/cache"}},
	{[]string{"deno"}, []string{".cache/deno"}},
	{[]string{"python3", "uv"}, []string{".cache/pip", ".cache/uv", ".cache/pypoetry", ".cache/pre-commit"}},
	{[]string{"cargo"}, []string{".cargo/registry", ".cargo/git", ".cache/sccache"}},
	{[]string{"cc", "gcc", "clang"}, []string{".cache/ccache", ".ccache"}},
	{[]string{"zig"}, []string{".cache/zig"}},
	{[]string{"bazel", "bazelisk"}, []string{".cache/bazel", ".cache/bazelisk"}},
	{[]string{"java", "mvn", "gradle"}, []string{".m2/repository", ".gradle/caches", ".gradle/wrapper", ".gradle/native", ".ivy2", ".sbt", ".cache/coursier"}},
	{[]string{"dotnet"}, []string{".nuget/packages"}},
	{[]string{"ruby"}, []string{".gem", ".bundle/cache"}},
	{[]string{"php"}, []string{".composer/cache"}},
	{[]string{"mix"}, []string{".hex", ".mix"}},
	{[]string{"ghc", "stack"}, []string{".cabal/packages", ".stack"}},
	{[]string{"dart"}, []string{".pub-cache"}},
}

// cacheVariables are variables that name such folders elsewhere.
var cacheVariables = []string{
	"GOCACHE", "GOMODCACHE", "GOPATH", "GOLANGCI_LINT_CACHE", "STATICCHECK_CACHE", "npm_config_cache", "NPM_CONFIG_CACHE",
	"YARN_CACHE_FOLDER", "PIP_CACHE_DIR", "UV_CACHE_DIR", "CCACHE_DIR", "SCCACHE_DIR", "CARGO_TARGET_DIR", "CARGO_HOME", "GRADLE_USER_HOME", "XDG_CACHE_HOME",
}

// scratchVariables are variables that name folders for scratch files.
var scratchVariables = []string{"TMPDIR", "TMP", "TEMP", "GOTMPDIR"}

// toolchains are folders and files of a home with programs and their settings. None contains credentials.
var toolchains = []string{
	"go/bin", "sdk", "bin", ".local/bin", ".local/lib", ".local/share/mise", ".local/share/uv", ".local/share/pnpm", ".local/share/pipx",
	".local/share/claude", ".local/share/fnm", ".pyenv", ".rbenv", ".nodenv", ".nvm", ".asdf", ".volta", ".bun", ".deno", ".sdkman", ".rustup",
	".cargo/bin", ".ghcup", ".dotnet", ".juliaup", "miniconda3", "anaconda3", ".conda/envs",
	".config/git/ignore", ".config/git/attributes",
}

// preferences are settings of a home that may contain credentials. They are shown only if they contain none.
var preferences = []string{".config/go/env", ".config/pip/pip.conf", ".cargo/config.toml", ".cargo/env"}

// credentials matches settings that contain a credential.
var credentials = regexp.MustCompile(`(?i)://[^/\s]*@|token|passw|secret|auth|credential`)

// toolVariables are variables that name such folders elsewhere; PATH names many.
var toolVariables = []string{
	"GOROOT", "RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR", "VOLTA_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "NODE_PATH", "PYTHONPATH",
	"PIP_FIND_LINKS", "PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
}

// kept are the capabilities that root's commands keep: those that builds and package managers use on files that are
// within reach anyway.
var kept = []struct {
	name   string
	number int // in <linux/capability.h>
}{
	{"CAP_CHOWN", 0}, {"CAP_DAC_OVERRIDE", 1}, {"CAP_FOWNER", 3}, {"CAP_FSETID", 4}, {"CAP_KILL", 5}, {"CAP_SETGID", 6}, {"CAP_SETUID", 7},
	{"CAP_SETPCAP", 8}, {"CAP_NET_BIND_SERVICE", 10}, {"CAP_SYS_CHROOT", 18}, {"CAP_SETFCAP", 31},
}

// draft collects the places of a policy.
type draft struct {
	places []Place
	own    string   // $PAWL_HOME
	homes  []string // the user's homes
	loose  []string // where commands may change names: sandbox.allow and the command's own folders
	look   func(path string) glance
}

// find is look for a path that may lead through folders in which commands can change names. It ignores a symlink
// there that leads out of its folder, because an earlier command may have planted it.
func (d *draft) find(path string) glance {
	found := d.look(path)
	for _, l := range found.links {
		for _, dir := range d.loose {
			if within(l.Path, dir) && !within(found.at, dir) {
				return glance{}
			}
		}
	}
	return found
}

// Make returns the policy of a command. For the same path, later places override earlier ones, and the innermost place
// decides. So $PAWL_HOME stays hidden and the user's repository read-only, whatever the spec allows around them.
func Make(r Request) Policy {
	d := draft{places: make([]Place, 0, 256), own: resolved(r.Home), homes: homes(), look: lately}
	for _, path := range slices.Concat(r.Allow, r.Own) {
		if file := resolved(allowed(path, d.homes)); file != "" {
			d.loose = append(d.loose, file)
		}
	}
	value := Values(r.Env)
	for _, dir := range slices.Concat(scratch, d.homes) {
		d.places = append(d.places, Place{Path: dir, Access: Empty})
	}
	for _, name := range scratchVariables {
		if found := d.find(value[name]); found.at != "" && !d.holds(found.at) {
			d.places = append(append(d.places, found.links...), Place{Path: found.at, Access: Empty})
		}
	}
	d.add(Read, system...)
	for i, p := range d.places {
		d.places[i].Public = os.Geteuid() == 0 && slices.Contains(public, p.Path)
	}
	d.add(Read, "/etc/resolv.conf", "/etc/localtime")
	d.add(Write, devices...)
	d.places = append(d.places, masks()...)
	for _, p := range settings {
		d.add(p.Access, p.Path)
	}
	d.add(Write, "/proc") // what the supervisor mounted there, with its own processes

	d.inHomes(Read, toolchains...)
	for _, home := range d.homes {
		for _, p := range chosen.of(home, preferred) {
			if d.find(p.name).at == p.at {
				d.places = append(append(d.places, p.place), p.links...)
			}
		}
	}
	d.look = now
	for _, path := range r.Allow {
		path = allowed(path, d.homes)
		if file := d.find(path).at; file != "" { // with everything in it, except homes and scratch folders
			d.places = slices.DeleteFunc(d.places, func(p Place) bool { return p.Access == Read && within(p.Path, file) })
		}
		d.add(Write, path)
	}
	d.look = lately
	for _, name := range append([]string{"PATH"}, toolVariables...) {
		for _, dir := range filepath.SplitList(value[name]) {
			d.open(dir)
			// A bin folder comes with its parent, which has what its programs need. In a home, the parent contains
			// other things too.
			if base, path := filepath.Base(dir), d.find(dir).at; (base == "bin" || base == "sbin") && !d.inHome(path) {
				d.open(filepath.Dir(path))
			}
		}
	}
	d.look = now
	d.open(named(r.Named, d.homes)...)
	if len(r.Argv) > 0 {
		d.open(installed(r.Argv[0], value["PATH"])...)
	}
	for _, word := range r.Argv { // a program's files are beside it
		if info, err := os.Stat(word); err == nil && filepath.IsAbs(word) && info.Mode().IsRegular() {
			d.open(filepath.Dir(word))
			d.names(word)
		}
	}
	d.look = lately
	d.layers(r, value)
	d.look = now
	for _, name := range r.Agents {
		if program, ok := agents.Lookup(name); ok {
			d.agent(r, program)
			d.open(installed(name, value["PATH"])...)
		}
	}
	for i, word := range r.Argv {
		if i > 0 && r.Argv[i-1] == "--" { // the program that another one starts
			d.open(installed(word, value["PATH"])...)
		}
		agent, _ := agents.Lookup(filepath.Base(word))
		if slices.Contains(r.Agents, agent.Name) {
			continue
		}
		for _, home := range d.homes {
			for _, folder := range agent.Writes {
				d.layer(r, filepath.Join(home, folder))
			}
		}
		d.inHomes(Write, agent.SignIn...)
		d.inHomes(Copy, agent.Copies...)
		d.inHomes(Read, agent.Reads...)
	}
	d.add(Read, r.Sealed...)
	if repo := d.find(r.Repo); repo.at != "" {
		d.places = append(append(d.places, Place{Path: repo.at, Access: Read, Apart: true}), repo.links...)
	}
	// The demo's own folder contains no other loop.
	if d.own != "" {
		demo := filepath.Join(d.own, "demo")
		d.places = slices.DeleteFunc(d.places, func(p Place) bool {
			return p.Access != Link && p.Access != Layer && within(p.Path, d.own) && !within(p.Path, demo)
		})
		d.places = append(d.places, Place{Path: d.own, Access: Hidden})
	}
	d.add(Write, r.Own...)
	d.hide(r)
	for _, file := range r.Secrets {
		if found := d.find(file); found.at != "" && !found.dir {
			d.places = append(d.places, Place{Path: found.at, Access: Hidden})
		}
	}

	p := r.Policy
	if !r.Machine.Network {
		p.Network = Open
	}
	if p.Closed = nil; p.Network == Open {
		p.Closed = slices.Compact(slices.Sorted(slices.Values(r.Closed)))
	}
	if r.Machine.Files != ByNothing {
		p.Places = d.withoutSockets(sorted(d.places))
		p.Places = slices.DeleteFunc(p.Places, func(l Place) bool { // a missing cache inside a read-only place
			return l.Access == Layer && l.Missing && slices.ContainsFunc(p.Places, func(o Place) bool { return o.Access == Read && within(l.Path, o.Path) })
		})
	}
	return p
}

// allowed returns a path of sandbox.allow; a leading ~ is the user's home.
func allowed(path string, homes []string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && len(homes) > 0 {
		return filepath.Join(homes[0], rest)
	}
	return path
}

// withoutSockets hides the sockets of programs in readable folders, because a read-only folder keeps nobody from
// connecting.
func (d *draft) withoutSockets(places []Place) []Place {
	var hidden []Place
	for _, path := range Sockets() {
		if covering(places, path).Access == Empty { // most are in /run
			continue
		}
		path = resolved(path) // the other program may see other files
		if covering(places, path).Access == Read {
			hidden = append(hidden, Place{Path: path, Access: Hidden})
		}
	}
	if len(hidden) == 0 {
		return places
	}
	return sorted(append(places, hidden...))
}

// add makes what exists at the paths accessible, under the names that people use as well.
func (d *draft) add(access Access, paths ...string) {
	for _, path := range paths {
		found := d.find(path)
		if found.at == "" || found.at == "/" {
			continue
		}
		d.places = append(append(d.places, Place{Path: found.at, Access: access}), found.links...)
	}
}

// names adds the symlinks on the way to a path.
func (d *draft) names(path string) { d.places = append(d.places, d.find(path).links...) }

func (d *draft) inHomes(access Access, names ...string) {
	for _, home := range d.homes {
		for _, name := range names {
			d.add(access, filepath.Join(home, name))
		}
	}
}

// holds reports whether a home or $PAWL_HOME is at a path or below it. Such a path must not be opened.
func (d *draft) holds(path string) bool {
	return within(d.own, path) || slices.ContainsFunc(d.homes, func(home string) bool { return within(home, path) })
}

func (d *draft) inHome(path string) bool {
	return slices.ContainsFunc(d.homes, func(home string) bool { return within(path, home) })
}

// open makes paths readable that somebody else named, unless that would open a home or $PAWL_HOME.
func (d *draft) open(paths ...string) {
	for _, path := range paths {
		file := d.find(path).at
		if file == "" || file == "/" || d.holds(file) || slices.ContainsFunc(slices.Concat(devices, scratch), func(s string) bool { return file == s }) ||
			within(file, "/proc") || within(file, "/dev") || within(file, "/sys") {
			continue
		}
		if d.whole(file) || covering(d.places, file).Access >= Read {
			d.names(path)
			continue
		}
		d.add(Read, path)
	}
}

// whole makes a path accessible if it is in a public place and only root may read it or a folder on the way to it.
// Such a folder is otherwise empty. whole reports whether it did so.
func (d *draft) whole(path string) bool {
	var around Place
	for _, p := range d.places {
		if p.Access != Link && !(p.Access == Hidden && p.Public) && len(p.Path) >= len(around.Path) && within(path, p.Path) {
			around = p
		}
	}
	if !around.Public {
		return false
	}
	outermost := roots.of(path, func(path string) (outermost string) {
		for ; path != around.Path && within(path, around.Path); path = filepath.Dir(path) {
			if info, err := os.Lstat(path); err != nil || info.Mode()&0o004 == 0 || info.IsDir() && info.Mode()&0o001 == 0 {
				outermost = path
			}
		}
		return outermost
	})
	if outermost == "" {
		return false
	}
	if outermost != path {
		d.places = append(d.places, Place{Path: outermost, Access: Hidden})
	}
	d.places = append(d.places, Place{Path: path, Access: Read, Whole: true})
	return true
}

// layers adds the caches, each as a layer over the user's.
func (d *draft) layers(r Request, value map[string]string) {
	for _, c := range caches {
		if !slices.ContainsFunc(c.programs, func(name string) bool { return programs.of(name, inPath) }) {
			continue
		}
		for _, home := range d.homes {
			for _, folder := range c.folders {
				d.layer(r, filepath.Join(home, folder))
			}
		}
	}
	for _, name := range cacheVariables {
		for _, folder := range filepath.SplitList(value[name]) {
			d.layer(r, folder)
		}
	}
}

func inPath(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// layer adds one folder with a layer of the command's own.
func (d *draft) layer(r Request, folder string) {
	if !filepath.IsAbs(folder) || d.holds(folder) {
		return
	}
	path := folder
	p := Place{Access: Layer, Missing: true}
	if found := d.find(folder); found.at != "" || d.look(folder).at != "" {
		have := found.at
		if !found.dir || d.holds(have) {
			return
		}
		d.places = append(d.places, found.links...)
		path, p.Lower, p.Missing = have, []string{have}, false
	}
	p.Path = path
	slot := strings.ReplaceAll(strings.Trim(path, "/"), "/", "%")
	for i, dir := range r.Layers {
		if i == 0 {
			p.Upper = filepath.Join(dir, slot)
		} else {
			p.Lower = slices.Insert(p.Lower, i-1, filepath.Join(dir, slot, upper))
		}
	}
	d.places = append(d.places, p)
}

// hide hides files of the tree that agents would run.
func (d *draft) hide(r Request) {
	if len(r.Own) == 0 {
		return
	}
	for _, name := range r.Agents {
		program, _ := agents.Lookup(name)
		for _, folder := range program.Hides {
			if found := now(filepath.Join(r.Own[0], folder)); found.dir && found.at != r.Own[0] && within(found.at, r.Own[0]) {
				d.places = append(d.places, Place{Path: found.at, Access: Empty})
			}
		}
	}
}

// systemHome is the user's home according to the system, "" if unknown.
var systemHome = sync.OnceValue(func() string {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return ""
	}
	return u.HomeDir
})

// homes returns the user's home according to the environment and according to the system. If they differ, both are the
// user's.
func homes() []string {
	home, _ := os.UserHomeDir() // "" if it is unknown
	out := []string{lately(home).at, lately(systemHome()).at}
	out = slices.DeleteFunc(out, func(h string) bool { return h == "" || h == "/" })
	return slices.Compact(out)
}

// Values returns the variables of an environment. The last of several with one name counts.
func Values(env []string) map[string]string {
	out := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		out[name] = value
	}
	return out
}

// named returns the absolute paths in texts, either as whole words or within shell code. The home may be written in the
// shell's ways.
func named(texts, homes []string) []string {
	var out []string
	for _, word := range texts {
		for _, part := range strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`;&|<>()=:,", r) }) {
			for _, short := range []string{"~/", "$HOME/", "${HOME}/"} {
				if rest, ok := strings.CutPrefix(part, short); ok && len(homes) > 0 {
					part = filepath.Join(homes[0], rest)
				}
			}
			if filepath.IsAbs(part) {
				out = append(out, part)
			}
		}
	}
	return out
}
