package deploy_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"pawl/config"
)

// compose is the part of the compose file that the tests read.
type compose struct {
	Services map[string]service
	Volumes  map[string]any
	Networks map[string]any
}

type service struct {
	Image, Build, Restart string
	Entrypoint, Command   []string
	Environment           map[string]string
	Volumes, Ports        []string
	Networks              []string
	Profiles              []string
	StopGracePeriod       string                                `yaml:"stop_grace_period"`
	DependsOn             map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck           *struct {
		Test    []string
		Disable bool
	}
}

func readCompose(t *testing.T) compose {
	t.Helper()
	var c compose
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "../docker-compose.yml")), &c))
	require.NotEmpty(t, c.Services)
	return c
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// once reports whether a service does something and ends.
func (s service) once() bool { return strings.HasPrefix(s.Restart, "on-failure") }

// healthy reports whether a service has a health check, its own or that of the image that is built here.
func (s service) healthy(t *testing.T) bool {
	if s.Healthcheck != nil {
		return !s.Healthcheck.Disable && len(s.Healthcheck.Test) > 0
	}
	return s.Build != "" && strings.Contains(read(t, "../Dockerfile"), "\nHEALTHCHECK ")
}

func TestWhatServicesWaitForIsThereAndComes(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		for other, on := range s.DependsOn {
			require.Contains(t, c.Services, other, name)
			switch on.Condition {
			case "service_healthy":
				require.True(t, c.Services[other].healthy(t), "%s waits for the health of %s, which has no check", name, other)
			case "service_completed_successfully":
				require.True(t, c.Services[other].once(), "%s waits for the end of %s, which has none", name, other)
			default:
				t.Errorf("%s waits for %s: %q", name, other, on.Condition)
			}
		}
		if !s.once() && len(s.Profiles) == 0 {
			require.True(t, s.healthy(t), "%s has no health check", name)
			require.Equal(t, "unless-stopped", s.Restart, name)
		}
	}
	// The order in Temporal's documentation.
	for _, pair := range [][2]string{{"schema", "postgresql"}, {"temporal", "schema"}, {"namespace", "temporal"}, {"worker-1", "namespace"}, {"worker-2", "namespace"}, {"ui", "namespace"}} {
		require.Contains(t, c.Services[pair[0]].DependsOn, pair[1], pair[0])
	}
}

func TestPortsAreBoundToThisMachine(t *testing.T) {
	published := 0
	for name, s := range readCompose(t).Services {
		for _, port := range s.Ports {
			require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s publishes %s", name, port)
			published++
		}
	}
	require.Equal(t, 3, published, "Temporal, its UI and the git remote")
}

// Agents run in the workers' containers, so agents could reach everything on the workers' networks.
func TestWhatAgentsOfWorkersCouldReach(t *testing.T) {
	c := readCompose(t)
	near := map[string][]string{} // the services that each service can reach
	for name, s := range c.Services {
		require.NotEmpty(t, s.Networks, "%s is on the default network, with everybody", name)
		for _, network := range s.Networks {
			require.Contains(t, c.Networks, network, name)
			for other, o := range c.Services {
				if other != name && slices.Contains(o.Networks, network) && !slices.Contains(near[name], other) {
					near[name] = append(near[name], other)
				}
			}
		}
	}
	for _, worker := range []string{"worker-1", "worker-2"} {
		others := slices.DeleteFunc(near[worker], func(name string) bool { return strings.HasPrefix(name, "worker-") })
		require.ElementsMatch(t, []string{"temporal", "git"}, others, worker)
	}
	require.Contains(t, near["ui"], "temporal")
	require.Contains(t, near["starter"], "temporal")
	require.Contains(t, near["namespace"], "temporal")
	require.Contains(t, near["schema"], "postgresql")
	require.ElementsMatch(t, []string{"temporal", "schema", "namespace"}, near["postgresql"])
	// No service offers HTTP beside gRPC: go.temporal.io/server turns its HTTP API off at port 0.
	require.Equal(t, "0", c.Services["temporal"].Environment["FRONTEND_HTTP_PORT"])
	for _, port := range c.Services["temporal"].Ports {
		require.NotContains(t, port, "7243")
	}
	// The remote that they reach accepts only pawl's branches and ledgers, and is not the one that is published.
	require.Equal(t, "refs/heads/pawl/ refs/pawl-ledger/", expand(t, c.Services["git"].Environment["GIT_TAKES"], nil))
	require.Empty(t, c.Services["git"].Ports)
	require.Empty(t, c.Services["git-people"].Environment["GIT_TAKES"])
	require.Equal(t, c.Services["git"].Volumes, c.Services["git-people"].Volumes)
}

func TestImagesArePinnedAndTodays(t *testing.T) {
	c := readCompose(t)
	tag := func(name string) string {
		image := expand(t, c.Services[name].Image, nil)
		require.NotContains(t, image, "auto-setup", "it is deprecated")
		_, tag, ok := strings.Cut(image, ":")
		require.True(t, ok, "%s is not pinned: %s", name, image)
		require.Regexp(t, `^[0-9]`, tag)
		return tag
	}
	version := regexp.MustCompile(`go\.temporal\.io/server v(\d+\.\d+)\.`).FindStringSubmatch(read(t, "../go.mod"))[1]
	require.True(t, strings.HasPrefix(tag("temporal"), version+"."), "the server is of another line than the embedded one")
	require.Equal(t, tag("temporal"), tag("schema"), "the schema comes with the server")
	require.Equal(t, tag("temporal"), tag("namespace"))
	tag("ui")
	tag("postgresql")
}

func TestVolumesHaveNamesAndMountedFilesExist(t *testing.T) {
	c := readCompose(t)
	used := map[string]bool{}
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			parts := strings.Split(v, ":")
			require.GreaterOrEqual(t, len(parts), 2, "%s has a volume without a name: %s", name, v)
			if strings.HasPrefix(parts[0], ".") {
				require.DirExists(t, filepath.Join("..", parts[0]), name)
				require.Equal(t, "ro", parts[len(parts)-1], "%s could write to the sources", name)
				continue
			}
			require.Contains(t, c.Volumes, parts[0], name)
			used[parts[0]] = true
		}
	}
	require.Len(t, used, len(c.Volumes), "a volume that nobody uses")
	require.NotEqual(t, c.Services["worker-1"].Volumes, c.Services["worker-2"].Volumes, "two workers of one identity")
	for _, path := range []string{c.Services["temporal"].Environment["DYNAMIC_CONFIG_FILE_PATH"]} {
		var settings map[string][]struct{ Value any }
		require.NoError(t, yaml.Unmarshal([]byte(read(t, here(t, c.Services["temporal"], path))), &settings))
		require.NotEmpty(t, settings)
	}
}

// here returns the source file of a path in a service: a file that is mounted or copied into its image.
func here(t *testing.T, s service, path string) string {
	t.Helper()
	for _, v := range s.Volumes {
		parts := strings.Split(v, ":")
		if rest, ok := strings.CutPrefix(path, parts[1]+"/"); ok {
			return filepath.Join("..", parts[0], rest)
		}
	}
	for _, line := range copies(t) {
		if target := line[len(line)-1]; strings.HasPrefix(path, target) {
			for _, source := range line[:len(line)-1] {
				if filepath.Base(source) == filepath.Base(path) {
					return filepath.Join("..", source)
				}
			}
		}
	}
	t.Fatalf("nothing is at %s", path)
	return ""
}

// scripts returns the source files of a service's scripts.
func (s service) scripts(t *testing.T) (files []string) {
	words := slices.Concat(s.Entrypoint, s.Command)
	if s.Healthcheck != nil {
		words = append(words, s.Healthcheck.Test...)
	}
	for _, word := range words {
		if strings.HasSuffix(word, ".sh") {
			files = append(files, here(t, s, word))
		}
	}
	return files
}

var (
	inScript  = regexp.MustCompile(`\$\{?([A-Z][A-Z0-9_]*)`)
	byDefault = regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*):-`)
)

func TestEveryScriptIsThereAndHasItsVariables(t *testing.T) {
	c := readCompose(t)
	run := map[string]bool{"../deploy/health.sh": true} // the image runs it
	for name, s := range c.Services {
		for _, file := range s.scripts(t) {
			run[file] = true
			text := read(t, file)
			optional := map[string]bool{}
			for _, m := range byDefault.FindAllStringSubmatch(text, -1) {
				optional[m[1]] = true
			}
			for _, m := range inScript.FindAllStringSubmatch(text, -1) {
				require.True(t, optional[m[1]] || s.Environment[m[1]] != "", "%s runs %s without %s", name, file, m[1])
			}
		}
	}
	require.Contains(t, read(t, "../Dockerfile"), "ENV PAWL_HOME=", "for health.sh")
	scripts, err := filepath.Glob("*.sh")
	require.NoError(t, err)
	for _, script := range scripts {
		require.True(t, run[filepath.Join("../deploy", script)], "nothing runs %s", script)
		info, err := os.Stat(script)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&0o111, "%s can't be executed", script)
		out, err := exec.Command("sh", "-n", script).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

var reference = regexp.MustCompile(`\$\{([A-Z_]+):-([^}]*)\}|\$\{?([A-Z_]+)\}?`)

// expand replaces a compose file's variables by the given values, or by their defaults.
func expand(t *testing.T, text string, given map[string]string) string {
	t.Helper()
	return reference.ReplaceAllStringFunc(text, func(r string) string {
		m := reference.FindStringSubmatch(r)
		if value, ok := given[m[1]]; ok {
			return value
		}
		require.NotEmpty(t, m[2], "%s has no default: `docker compose up` on a new clone would be without", r)
		return m[2]
	})
}

// Every variable has a default and is documented.
func TestEveryVariableOfTheComposeFileHasADefaultAndIsDocumented(t *testing.T) {
	page, text := read(t, "../docs/reference/settings.md"), read(t, "../docker-compose.yml")
	expand(t, text, nil)
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		require.Contains(t, page, fmt.Sprintf("| `%s` | `%s` |", m[1], m[2]), "docs/reference/settings.md")
	}
}

// The programs understand the settings that the compose file gives them.
func TestTheWorkersAreToldWhatTheyUnderstand(t *testing.T) {
	c := readCompose(t)
	require.Equal(t, c.Services["worker-1"].Environment, c.Services["worker-2"].Environment)
	for _, name := range []string{"worker-1", "starter"} {
		for key, value := range c.Services[name].Environment {
			t.Setenv(key, expand(t, value, nil))
		}
		t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
		connection, err := config.Connect()
		require.NoError(t, err)
		require.True(t, connection.Explicit)
		require.Equal(t, "temporal:7233", connection.Address)
		require.Equal(t, "default", connection.Namespace)
		require.Equal(t, connection.Namespace, expand(t, c.Services["namespace"].Environment["PAWL_NAMESPACE"], nil))
		_, err = config.LoadWorker(nil)
		require.NoError(t, err)
	}
	w, err := config.LoadWorker(nil)
	require.NoError(t, err)
	grace, err := time.ParseDuration(c.Services["worker-1"].StopGracePeriod)
	require.NoError(t, err)
	require.Greater(t, grace, w.StopTimeout, "the container is killed while its agents end")
}

var copyLine = regexp.MustCompile(`(?m)^COPY ((?:--\S+ )*)(.+)$`)

// copies returns the Dockerfile's COPY lines that copy from the sources: sources, then the target.
func copies(t *testing.T) (lines [][]string) {
	t.Helper()
	for _, m := range copyLine.FindAllStringSubmatch(read(t, "../Dockerfile"), -1) {
		if !strings.Contains(m[1], "--from=") {
			lines = append(lines, strings.Fields(m[2]))
		}
	}
	return lines
}

// The image is built from what .dockerignore lets through. `go list` must find the programs' packages in that alone.
func TestTheImageHasEverythingThatItIsBuiltFrom(t *testing.T) {
	dockerfile := read(t, "../Dockerfile")
	toolchain := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(read(t, "../go.mod"))[1]
	require.Contains(t, dockerfile, "FROM golang:"+toolchain+"-")
	for _, line := range copies(t) {
		for _, source := range line[:len(line)-1] {
			_, err := os.Stat(filepath.Join("..", source))
			require.NoError(t, err)
			require.True(t, source == "." || passes(t, filepath.Clean(source)), "%s is kept out by .dockerignore", source)
		}
	}

	context := t.TempDir()
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel("..", path)
		switch {
		case err != nil || name == ".":
			return err
		case !passes(t, name):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return os.Mkdir(filepath.Join(context, name), 0o700)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(context, name), b, 0o600)
	}))
	var programs []string
	for _, m := range regexp.MustCompile(`go build [^\n]*-o /out/ (.*)`).FindStringSubmatch(dockerfile)[1:] {
		programs = append(programs, strings.Fields(m)...)
	}
	require.Equal(t, []string{"./worker", "./starter"}, programs)
	list := func(dir string) string { // includes the embedded files
		cmd := exec.Command("go", append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{.GoFiles}} {{.EmbedFiles}}{{end}}"}, programs...)...)
		cmd.Dir = dir
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, stderr.String())
		return string(out)
	}
	require.Equal(t, list(".."), list(context))
}

// passes reports whether .dockerignore lets a path of the sources through: "*" excludes everything, "!name" includes a
// name at the top, "**/name" excludes a name anywhere.
func passes(t *testing.T, path string) bool {
	t.Helper()
	names := strings.Split(path, "/")
	in := false
	for _, rule := range strings.Split(read(t, "../.dockerignore"), "\n") {
		switch {
		case rule == "" || rule[0] == '#' || rule == "*":
		case rule[0] == '!':
			in = in || names[0] == rule[1:]
		case strings.HasPrefix(rule, "**/"):
			if slices.Contains(names, rule[3:]) {
				return false
			}
		default:
			t.Fatalf("this test does not understand %q in .dockerignore", rule)
		}
	}
	return in
}
