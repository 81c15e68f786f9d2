package sandbox

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/program"
)

// Request is what a policy is made for.
type Request struct {
	Machine Machine
	Home    string   // $PAWL_HOME
	Repo    string   // the user's repository
	Own     []string // inside of $PAWL_HOME, and the command's to write: its tree, the exchange
	Closed  []int
	Env     []string // the command's environment
	Argv    []string // the command
	Named   []string // texts of the spec whose absolute paths may be read: the command, values of agent.env
	// Allow and Ports are the spec's: what it makes writable, and which closed ports it opens.
	Allow []string
	Ports []int
}

// caches are folders of a home that builds fill and that can be made again. The user's own builds use them
// too, and nothing keeps an agent from poisoning one.
var caches = []string{
	".cache/go-build", ".cache/golangci-lint", ".cache/staticcheck", ".cache/goimports", "go/pkg", ".cache/gopls",
	".npm", ".cache/node", ".cache/yarn", ".yarn/berry", ".cache/pnpm", ".local/share/pnpm/store", ".bun/install/cache", ".cache/deno",
	".cache/pip", ".cache/uv", ".cache/pypoetry", ".cache/pre-commit", ".cache/ms-playwright", ".cache/Cypress", ".cache/puppeteer",
	".cargo/registry", ".cargo/git", ".cache/sccache", ".cache/ccache", ".ccache", ".cache/zig", ".cache/bazel", ".cache/bazelisk",
	".m2/repository", ".gradle/caches", ".gradle/wrapper", ".gradle/daemon", ".gradle/native", ".ivy2", ".sbt", ".cache/coursier",
	".nuget/packages", ".gem", ".bundle/cache", ".composer/cache", ".hex", ".mix", ".cabal/packages", ".stack", ".pub-cache",
}

// cacheVariables name such folders elsewhere.
var cacheVariables = []string{
	"GOCACHE", "GOMODCACHE", "GOPATH", "GOTMPDIR", "GOLANGCI_LINT_CACHE", "STATICCHECK_CACHE", "npm_config_cache", "NPM_CONFIG_CACHE",
	"YARN_CACHE_FOLDER", "PIP_CACHE_DIR", "UV_CACHE_DIR", "CCACHE_DIR", "SCCACHE_DIR", "CARGO_TARGET_DIR", "GRADLE_USER_HOME", "TMPDIR",
}

// toolchains are folders and files of a home with programs and their settings. They can be read, never
// written. None has credentials in it.
var toolchains = []string{
	"go/bin", "sdk", "bin", ".local/bin", ".local/lib", ".local/share/mise", ".local/share/uv", ".local/share/pnpm", ".local/share/pipx",
	".local/share/claude", ".local/share/fnm", ".pyenv", ".rbenv", ".nodenv", ".nvm", ".asdf", ".volta", ".bun", ".deno", ".sdkman", ".rustup",
	".cargo/bin", ".cargo/env", ".cargo/config.toml", ".ghcup", ".dotnet", ".juliaup", "miniconda3", "anaconda3", ".conda/envs",
	".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes", ".config/go/env", ".config/pip/pip.conf",
}

// toolVariables name such folders elsewhere; PATH names many.
var toolVariables = []string{"GOROOT", "RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR", "VOLTA_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "NODE_PATH", "PYTHONPATH"}

// sockets belong to programs that run things for whoever asks: container engines, the service manager,
// the session's bus, agents that hold keys.
var sockets = []string{
	"/run/user", "/run/docker.sock", "/run/containerd", "/run/podman", "/run/crio", "/run/dbus", "/run/systemd/private", "/run/snapd.socket",
	"/run/snapd-snap.socket", "/run/libvirt", "/run/lxd.socket", "/run/incus", "/run/cron.reboot", "/var/lib/docker", "/var/spool/cron", "/tmp/.X11-unix",
}

// socketGlobs are such places with a random part.
var socketGlobs = []string{"/tmp/ssh-*", "/tmp/dbus-*", "/tmp/tmux-*", "/tmp/.ICE-unix"}

// rootOnly are places through which root can change the system: raw disks, the kernel's settings. A
// container closes the same ones.
var rootOnly = []Place{
	{"/proc/sys", Read}, {"/proc/sysrq-trigger", Read}, {"/proc/irq", Read}, {"/proc/bus", Read}, {"/proc/kcore", Hidden}, {"/sys", Read},
	{"/boot", Read}, {"/etc", Read}, {"/usr", Read}, {"/dev", Hidden},
	{"/dev/null", Write}, {"/dev/zero", Write}, {"/dev/full", Write}, {"/dev/random", Write}, {"/dev/urandom", Write},
	{"/dev/tty", Write}, {"/dev/pts", Write}, {"/dev/ptmx", Write}, {"/dev/shm", Write}, {"/dev/fuse", Write}, {"/dev/kvm", Write},
}

// kept are the capabilities that a command of root's keeps: those that a container's root has.
var kept = []struct {
	name   string
	number int // in <linux/capability.h>
}{
	{"CAP_CHOWN", 0}, {"CAP_DAC_OVERRIDE", 1}, {"CAP_FOWNER", 3}, {"CAP_FSETID", 4}, {"CAP_KILL", 5}, {"CAP_SETGID", 6}, {"CAP_SETUID", 7},
	{"CAP_SETPCAP", 8}, {"CAP_NET_BIND_SERVICE", 10}, {"CAP_NET_RAW", 13}, {"CAP_IPC_LOCK", 14}, {"CAP_SYS_CHROOT", 18},
	{"CAP_SYS_NICE", 23}, {"CAP_SYS_RESOURCE", 24}, {"CAP_AUDIT_WRITE", 29}, {"CAP_SETFCAP", 31},
}

// Make works out the policy of a command. Later places overrule earlier ones for the same path,
// and the innermost decides, so that $PAWL_HOME stays out of reach whatever the spec allows
// around it.
func Make(r Request) Policy {
	var places []Place
	add := func(access Access, paths ...string) {
		for _, path := range paths {
			if at := resolved(path); at != "" && at != "/" {
				places = append(places, Place{at, access})
			}
		}
	}
	if os.Geteuid() == 0 {
		for _, p := range rootOnly {
			if resolved(p.Path) == p.Path { // /dev/ptmx may be a link into /dev/pts
				add(p.Access, p.Path)
			}
		}
	}
	add(Hidden, sockets...)
	for _, glob := range socketGlobs {
		found, _ := filepath.Glob(glob)
		add(Hidden, found...)
	}
	repo, own, homes := resolved(r.Repo), resolved(r.Home), homes()
	for _, home := range homes {
		places = append(places, private(home)...)
	}
	// Before anything in a home is opened again.
	if repo != "" && around(sorted(append(slices.Clone(places), Place{own, Hidden})), repo) == Write {
		places = append(places, readable(repo)...)
	}
	inHomes := func(access Access, names ...string) {
		for _, home := range homes {
			for _, name := range names {
				add(access, filepath.Join(home, name))
			}
		}
	}
	inHomes(Read, toolchains...)
	inHomes(Write, caches...)
	value := values(r.Env)
	hidden := sorted(append(slices.Clone(places), Place{own, Hidden}))
	open := func(access Access, paths ...string) {
		for _, path := range paths {
			// Only what would be out of reach, and nothing that a home or $PAWL_HOME is in.
			at := resolved(path)
			if at == "" || within(own, at) || slices.ContainsFunc(homes, func(home string) bool { return within(home, at) }) {
				continue
			}
			if around(hidden, at) < access {
				add(access, at)
			}
		}
	}
	for _, name := range append([]string{"PATH"}, toolVariables...) {
		open(Read, filepath.SplitList(value[name])...)
	}
	open(Read, named(r.Named, homes)...)
	if len(r.Argv) > 0 {
		open(Read, installed(r.Argv[0], value["PATH"])...)
	}
	for _, word := range r.Argv { // a program has what it needs beside it
		if info, err := os.Stat(word); err == nil && filepath.IsAbs(word) && info.Mode().IsRegular() {
			open(Read, filepath.Dir(word))
		}
	}
	for _, name := range cacheVariables {
		open(Write, filepath.SplitList(value[name])...)
	}
	for _, word := range r.Argv {
		agent, _ := program.Lookup(filepath.Base(word))
		inHomes(Write, agent.Writes...)
		inHomes(Copy, agent.Copies...)
		inHomes(Read, agent.Reads...)
	}
	for _, path := range r.Allow {
		if rest, ok := strings.CutPrefix(path, "~/"); ok && len(homes) > 0 {
			path = filepath.Join(homes[0], rest)
		}
		add(Write, path)
	}
	// The demo's own folder has nothing of any other loop.
	demo := filepath.Join(own, "demo")
	places = slices.DeleteFunc(places, func(p Place) bool { return within(p.Path, own) && !within(p.Path, demo) })
	add(Hidden, own)
	add(Write, r.Own...)
	closed := slices.DeleteFunc(slices.Clone(r.Closed), func(port int) bool { return slices.Contains(r.Ports, port) })
	slices.Sort(closed)
	p := Policy{Closed: slices.Compact(closed), By: r.Machine.Files, Bwrap: r.Machine.Bwrap, Landlock: r.Machine.Landlock}
	if p.By != ByNothing {
		p.Places = sorted(places)
	}
	return p
}

// installed are the folders without which a program that npm has installed does not start: those of
// the packages, and the one with the link that it is called by.
func installed(program, path string) []string {
	candidates := []string{program}
	if !strings.Contains(program, "/") {
		candidates = nil
		for _, dir := range filepath.SplitList(path) {
			candidates = append(candidates, filepath.Join(dir, program))
		}
	}
	const packages = "/node_modules"
	for _, link := range candidates {
		target, err := filepath.EvalSymlinks(link)
		if err != nil || !filepath.IsAbs(link) {
			continue
		}
		if i := strings.Index(target, packages+"/"); i >= 0 {
			return []string{target[:i+len(packages)], filepath.Dir(link)}
		}
		return nil
	}
	return nil
}

// private is what is hidden of a home: all of it. A home in the temporary folder was made by a test or a
// build, which has its scratch files in it too: of such a home only the names that settings and
// credentials have are hidden.
func private(home string) []Place {
	if temp := resolved(os.TempDir()); temp == "" || home == temp || !within(home, temp) {
		return []Place{{home, Hidden}}
	}
	var places []Place
	entries, _ := os.ReadDir(home)
	for _, e := range entries {
		switch at := resolved(filepath.Join(home, e.Name())); {
		case !strings.HasPrefix(e.Name(), ".") || at == "":
		case e.IsDir():
			places = append(places, Place{at, Hidden})
		default:
			places = append(places, Place{at, Read})
		}
	}
	return places
}

// maxEntries is up to how many entries a repository's root is taken apart.
const maxEntries = 500

// readable makes a repository unchangeable as it is. New files can be made at its root, where a
// `loop-stop` counts whoever makes it.
func readable(repo string) []Place {
	entries, err := os.ReadDir(repo)
	if err != nil || len(entries) > maxEntries {
		return []Place{{repo, Read}}
	}
	places := []Place{{repo, Fixed}}
	for _, e := range entries {
		if e.Type().IsRegular() || e.IsDir() {
			places = append(places, Place{filepath.Join(repo, e.Name()), Read})
		}
	}
	return places
}

// homes are the user's home as the environment names it and as the system does. Where they differ, both
// are the user's.
func homes() []string {
	var out []string
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		out = append(out, resolved(u.HomeDir))
	}
	if h, err := os.UserHomeDir(); err == nil {
		out = append([]string{resolved(h)}, out...)
	}
	out = slices.DeleteFunc(out, func(h string) bool { return h == "" || h == "/" })
	return slices.Compact(out)
}

func values(env []string) map[string]string {
	out := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		out[name] = value
	}
	return out
}

// named are the absolute paths that stand in texts, be they words of their own or inside of a text
// for the shell; the home may be written as the shell knows it.
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
