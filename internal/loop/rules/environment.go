package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/secretscan"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// inherited lists the variables of a worker's environment that agent and commands get (E6): those that builds need. A
// name that ends in * stands for all names that begin with it. All others stay out, so a name that nobody has thought
// of cannot leak.
var inherited = strings.Fields(`
	PATH HOME USER LOGNAME SHELL TERM TERMINFO TERMINFO_DIRS COLORTERM NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE
	COLUMNS LINES LANG LANGUAGE LC_* TZ TZDIR TMPDIR TMP TEMP HOSTNAME CI SOURCE_DATE_EPOCH DEBIAN_FRONTEND MANPATH INFOPATH
	XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CONFIG_DIRS XDG_DATA_DIRS

	HTTP_PROXY HTTPS_PROXY ALL_PROXY FTP_PROXY NO_PROXY http_proxy https_proxy all_proxy ftp_proxy no_proxy
	SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE

	CC CXX CPP LD AR AS NM RANLIB STRIP FC F77 CFLAGS CXXFLAGS CPPFLAGS LDFLAGS FFLAGS FCFLAGS ARCHFLAGS MAKEFLAGS MAKE
	CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH
	PKG_CONFIG PKG_CONFIG_* ACLOCAL_PATH CMAKE_* CTEST_* NINJA_STATUS MESON_* CCACHE_* SCCACHE_* DISTCC_* LLVM_* ASAN_OPTIONS
	LSAN_OPTIONS MSAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS SDKROOT DEVELOPER_DIR MACOSX_DEPLOYMENT_TARGET VCPKG_*
	CUDA_* ROCM_* OMP_* MKL_* OPENBLAS_* NIX_* IN_NIX_SHELL GUIX_* HOMEBREW_* BAZEL* BUCK_*

	GO111MODULE GO386 GOAMD64 GOARCH GOARM GOARM64 GOBIN GOCACHE GOCOVERDIR GODEBUG GOENV GOEXPERIMENT GOFIPS140 GOFLAGS
	GOGC GOINSECURE GOLANGCI_LINT_CACHE GOMAXPROCS GOMEMLIMIT GOMIPS GOMIPS64 GOMODCACHE GONOPROXY GONOSUMDB GOOS GOPATH
	GOPPC64 GOPRIVATE GOPROXY GORISCV64 GOROOT GOSUMDB GOTELEMETRY GOTELEMETRYDIR GOTESTSUM_* GOTMPDIR GOTOOLCHAIN GOTRACEBACK
	GOVCS GOVERSION GOWASM GOWORK CGO_* RUST* CARGO_* ZIG_* NIMBLE_DIR SWIFT_* TOOLCHAINS

	PYTHON* PIP_* PIPX_* UV_* VIRTUAL_ENV VIRTUAL_ENV_PROMPT VIRTUALENV_* CONDA_* MAMBA_* PYENV* POETRY_* PDM_* HATCH_*
	TOX_* NOX_* PYTEST_* MYPY* RUFF_* BLACK_* NUMBA_* JUPYTER_* IPYTHONDIR MPLBACKEND MPLCONFIGDIR HF_HOME TORCH_HOME

	NODE_* NPM_* npm_* NVM_* VOLTA_* FNM_* PNPM_* YARN_* COREPACK_* BUN_* DENO_* TS_NODE_* JEST_* VITEST* PLAYWRIGHT_*
	PUPPETEER_* CYPRESS_* ELECTRON_* ESBUILD_* CHROME_BIN CHROME_PATH BROWSERSLIST*

	JAVA_* JDK_* _JAVA_OPTIONS CLASSPATH MAVEN_* M2_HOME M2 MVNW_* GRADLE_* KOTLIN_* SCALA_* SBT_* COURSIER_* ANT_* SDKMAN_*
	GROOVY_HOME CLJ_* LEIN_* ANDROID_* GRAALVM_HOME DOTNET_* NUGET_* MSBUILD* FLUTTER_* DART_* PUB_CACHE

	RUBY* GEM_* RBENV_* rvm_* BUNDLE_PATH BUNDLE_GEMFILE BUNDLE_WITHOUT BUNDLE_WITH BUNDLE_APP_CONFIG BUNDLE_BIN
	BUNDLE_JOBS BUNDLE_RETRY BUNDLE_FROZEN BUNDLE_DEPLOYMENT RAILS_ENV RACK_ENV PERL* PHP_* PHPRC COMPOSER_* LUA_* JULIA_* R_*
	RENV_* GHC* GHCUP_* CABAL_* STACK_* ERL_* ELIXIR_* MIX_* HEX_* REBAR_* OPAM* OCAML* CAML_* ASDF_* MISE_* TEXINPUTS TEXMF*
`)

// hidden lists parts of names whose values are secrets, whatever the name begins with: npm_config__authToken,
// CARGO_REGISTRY_TOKEN. A word here is a part of the name between underscores.
var (
	hidden      = []string{"KEY", "TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "AUTH", "COOKIE", "SESSION", "HEADERS"}
	hiddenWords = []string{"PASS", "PWD", "PAT", "DSN", "PIN", "OTP", "CERT", "BASIC", "LOGIN"}
	harmless    = []string{"SSL_CERT_FILE", "SSL_CERT_DIR"}                                                                            // where public certificates are
	assigned    = lazyregexp.New(`(?i)(?:token|secret|passw|passphrase|credential|api[_.-]?key)[\w.-]*["']?(?:\s*[=:]\s*|\s+)[^\s,;]`) // in a value: -Drepo.password=x, access-tokens = x
	withUser    = lazyregexp.New(`(?i)[a-z][a-z0-9+.-]*://[^\s/@]+@`)
)

// Inherited splits a worker's environment into the variables that a loop's agent and commands get, and the names that
// stay out. A variable stays out under any name if its value is a credential, gives one to a program, or is a URL with
// a user in it.
func Inherited(env []string) (kept, out []string) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case name == "":
		case allowed(name) && !credential(name, value):
			kept = append(kept, kv)
		default:
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return kept, slices.Compact(out)
}

func allowed(name string) bool {
	return slices.ContainsFunc(inherited, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, prefix)
	})
}

func credential(name, value string) bool {
	switch upper := strings.ToUpper(name); {
	case slices.Contains(harmless, name):
		return false
	case slices.ContainsFunc(hidden, func(part string) bool { return strings.Contains(upper, part) }),
		slices.ContainsFunc(strings.Split(upper, "_"), func(word string) bool { return slices.Contains(hiddenWords, word) }),
		withUser().MatchString(value), assigned().MatchString(value):
		return true
	}
	return len(findIn(value)) > 0 || len(secretscan.Find(name+"="+value)) > 0
}

// Commands returns the commands of a spec by their keys, those of agents with their arguments.
func Commands(s spec.Spec) map[string]string {
	commands := map[string]string{
		"setup.command": s.Setup.Command, "verify.command": s.Verify.Command, "verify.holdout.command": s.Verify.Holdout.Command,
		"guard.command": s.Guard.Command, "test.command": s.Test.Command, "check.command": s.Check.Command,
	}
	for _, a := range s.Agent.All() {
		commands[a.Key+".command"] = strings.Join(slices.Concat([]string{a.Command.Shell}, a.Command.List, a.Args), "\n")
	}
	return commands
}

// Contained returns why a spec may not be started if one of its variables, commands or texts contains a credential: the
// spec is in the ledger, which pawl pushes and which never changes. What only might be one is said in the contract.
func Contained(s spec.Spec) *fault.Error {
	var first *fault.Error
	look := func(key, text, advice string) {
		if found := findIn(text); len(found) > 0 && first == nil {
			first = kept(fault.InvalidSpec, key, found).Advise(advice)
		}
	}
	for _, a := range s.Agent.All() {
		for _, name := range slices.Sorted(maps.Keys(a.Env)) {
			look(a.Key+".env."+name, name+"="+a.Env[name], "Set "+name+" in the worker's environment, and name it in the spec: "+name+": $"+name)
		}
	}
	commands := Commands(s)
	for _, key := range slices.Sorted(maps.Keys(commands)) {
		look(key, strings.ReplaceAll(commands[key], "\n", " "), "Let the command read it from a file.")
	}
	for i, target := range s.Notify {
		look(fmt.Sprintf("notify[%d]", i), target, "Let a command read the address from a file, such as: curl -fsS --data @- \"$(cat ~/.config/hook)\"")
	}
	look("goal", s.Goal, "Leave it out of the goal.")
	return first
}

// Carried returns why a message with that payload, JSON, is refused if a text in it contains a credential.
func Carried(payload []byte) *fault.Error {
	var values any
	if json.Unmarshal(payload, &values) != nil {
		return nil // it is no message either
	}
	var look func(key, name string, value any) *fault.Error
	look = func(key, name string, value any) *fault.Error {
		switch v := value.(type) {
		case string:
			found := findIn(v)
			if len(found) == 0 {
				found = findIn(name + "=" + v) // "apiKey": "…"
			}
			if len(found) > 0 {
				return kept(fault.InvalidMessage, cmp.Or(key, "it"), found).Advise("Send it without. A command can read it from a file.")
			}
		case []any:
			for i, item := range v {
				if f := look(fmt.Sprintf("%s[%d]", key, i), name, item); f != nil {
					return f
				}
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				if f := look(strings.TrimPrefix(key+"."+loop.Clip(secretscan.Redact(k), 80), "."), k, v[k]); f != nil {
					return f
				}
			}
		}
		return nil
	}
	return look("", "", values)
}

// kept is the error for a credential that would be in the ledger.
func kept(code fault.Code, key string, found []secretscan.Found) *fault.Error {
	return fault.New(code, "%s contains %s, and pawl would push it with the ledger, where it stays", key, found[0].Kind)
}

// findIn finds credentials in a text of several lines.
func findIn(text string) []secretscan.Found {
	for line := range strings.Lines(text) {
		if found := secretscan.Find(line); len(found) > 0 {
			return found
		}
	}
	return nil
}

// Environment returns the lines of the contract about the worker's environment: which variables agent and commands get,
// and which missing variables a command of the spec mentions, with how to provide them.
func Environment(s spec.Spec, env []string) []string {
	_, out := Inherited(env)
	lines := []string{"the worker's variables that builds need (PATH, HOME, LANG, GO…, NODE… and the like); all others stay out, and so does whatever looks like a credential"}
	commands, given := Commands(s), map[string]map[string]string{}
	seen := map[string]bool{}
	for _, a := range s.Agent.All() {
		given[a.Key+".command"] = a.Env
		for _, name := range slices.Sorted(maps.Keys(a.Env)) {
			value := a.Env[name]
			if kv := name + "=" + value; !seen[kv] && value != "" && !strings.Contains(value, "$") && credential(name, value) {
				seen[kv] = true
				lines = append(lines, a.Key+".env."+name+" looks like a credential, and pawl pushes the spec with the ledger: name a variable of the worker instead, as $"+name)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(commands)) {
		for _, name := range out {
			if _, ok := given[key][name]; ok || !mentions(commands[key], name) {
				continue
			}
			advice := "set it in the command, or let the command read it from a file"
			if strings.HasPrefix(key, "agent.") {
				advice = "name it in agent.env"
			}
			lines = append(lines, key+" mentions "+name+", which stays out: "+advice)
		}
	}
	return lines
}

// mentions reports whether a command contains a name as a whole word.
func mentions(command, name string) bool {
	if !strings.Contains(command, name) {
		return false
	}
	word, err := regexp.Compile(`(?:^|[^\pL\pN_])` + regexp.QuoteMeta(name) + `(?:$|[^\pL\pN_])`)
	return err == nil && word.MatchString(command) // an error says that the name is no text
}
