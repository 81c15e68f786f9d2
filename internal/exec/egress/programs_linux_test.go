package egress_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/egress"
	"pawl/test/harness/tier"
)

// The programs of real builds run unchanged, in a network that has nothing but the proxy. The host that they ask has
// what registries have. Without -tags nightly only curl and git run.
func TestE6_ProgramsFindTheProxy(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	dir := t.TempDir()
	ca, certificate := newCertificate(t, "registry.test")
	caFile := filepath.Join(dir, "ca.pem")
	require.NoError(t, os.WriteFile(caFile, ca, 0o600))
	files := registry(t, dir)
	var asked refusals // of requests that arrived
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.add(r.URL.Path, r.UserAgent())
		files.ServeHTTP(w, r)
	})
	plain := &http.Server{Handler: handler}
	at80, at443 := there.listen(t, there4+":80"), there.listen(t, there4+":443")
	go func() { _ = plain.Serve(at80) }()
	t.Cleanup(func() { _ = plain.Close() })
	secure := &http.Server{Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = secure.ServeTLS(at443, "", "") }()
	t.Cleanup(func() { _ = secure.Close() })

	room := newPlace(t)
	var seen refusals
	servedBy(t, room.listen(t, fmt.Sprintf("127.0.0.1:%d", egress.Port)), egress.Rules{}, known(map[string][]string{"registry.test": {there4}}).resolver(), seen.add)
	python, _ := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output() // the real program, not the wrapper of a version manager
	work := filepath.Join(dir, "work")
	require.NoError(t, os.Mkdir(work, 0o700))
	write := func(name, text string) string {
		path := filepath.Join(work, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { // the machine's settings for registries and proxies
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains([]string{"PATH", "HOME", "JAVA_HOME", "RUSTUP_HOME", "GOROOT"}, name)
	})
	env = append(env, "SSL_CERT_FILE="+caFile, "CURL_CA_BUNDLE="+caFile, "GIT_SSL_CAINFO="+caFile, "NODE_EXTRA_CA_CERTS="+caFile, "PIP_CERT="+caFile, "CARGO_HTTP_CAINFO="+caFile,
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "npm_config_userconfig="+filepath.Join(dir, "npmrc"), "npm_config_globalconfig=/dev/null", "npm_config_fetch_retries=0", "npm_config_cache="+filepath.Join(dir, "npm"), "npm_config_registry=https://registry.test/npm/",
		"PIP_CONFIG_FILE=/dev/null", "PIP_NO_CACHE_DIR=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_INDEX_URL=https://registry.test/simple",
		"GOPROXY=https://registry.test/go", "GOMODCACHE="+filepath.Join(dir, "go"), "GONOSUMDB=*", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local", "GO111MODULE=on",
		"CARGO_HOME="+filepath.Join(dir, "cargo"))
	env = append(env, egress.Environment(map[string]string{"MAVEN_OPTS": "-Djavax.net.ssl.trustStore=" + filepath.Join(dir, "trust.p12") + " -Djavax.net.ssl.trustStorePassword=changeit"})...)
	write("rust/Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ndemo = \"1\"\n")
	write("rust/src/lib.rs", "")
	write("rust/.cargo/config.toml", "[source.crates-io]\nreplace-with = \"here\"\n[source.here]\nregistry = \"sparse+https://registry.test/index/\"\n")
	write("java/pom.xml", `<project><modelVersion>4.0.0</modelVersion><parent><groupId>test</groupId><artifactId>demo</artifactId><version>1.0.0</version><relativePath/></parent><artifactId>x</artifactId><packaging>pom</packaging></project>`)
	settings := write("java/settings.xml", `<settings><localRepository>`+filepath.Join(dir, "m2")+`</localRepository><mirrors><mirror><id>here</id><url>https://registry.test/maven</url><mirrorOf>*</mirrorOf></mirror></mirrors></settings>`)

	for _, c := range []struct {
		name  string
		argv  []string
		asked string // a path at the registry
		want  string // in the program's output
	}{
		{"curl", []string{"curl", "-sS", "https://registry.test/hello"}, "/hello", "hello"},
		{"curl, plain HTTP", []string{"curl", "-sS", "http://registry.test/hello"}, "/hello", "hello"},
		{"curl, by SOCKS", []string{"curl", "-sS", "--proxy", fmt.Sprintf("socks5h://127.0.0.1:%d", egress.Port), "https://registry.test/hello"}, "/hello", "hello"},
		{"wget", []string{"wget", "-q", "-O", "-", "--ca-certificate=" + caFile, "https://registry.test/hello"}, "/hello", "hello"},
		{"git", []string{"git", "clone", "-q", "https://registry.test/demo.git", "cloned"}, "/demo.git/info/refs", ""},
		{"npm", []string{"npm", "view", "demo", "description"}, "/npm/demo", "demo of npm"},
		{"npm install", []string{"npm", "install", "--prefix", "js", "--no-audit", "--no-fund", "demo"}, "/npm/demo/-/demo-1.0.0.tgz", "added 1 package"},
		{"pip", []string{strings.TrimSpace(string(python)), "-m", "pip", "download", "--retries", "0", "--no-deps", "-d", "wheels", "demo"}, "/simple/demo-1.0.0-py3-none-any.whl", "Successfully downloaded demo"},
		{"Python's own client", []string{strings.TrimSpace(string(python)), "-c", "import urllib.request; print(urllib.request.urlopen('https://registry.test/hello').read())"}, "/hello", "hello"},
		{"go", []string{"go", "mod", "download", "-json", "example.test/demo@v1.0.0"}, "/go/example.test/demo/@v/v1.0.0.zip", `"Version": "v1.0.0"`},
		{"cargo", []string{"cargo", "fetch", "--manifest-path", "rust/Cargo.toml"}, "/crates/demo/1.0.0/download", "Downloaded demo v1.0.0"},
		{"Maven", []string{"mvn", "-B", "-s", settings, "-f", "java/pom.xml", "validate"}, "/maven/test/demo/1.0.0/demo-1.0.0.pom", "BUILD SUCCESS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !tier.Nightly && c.argv[0] != "curl" && c.argv[0] != "git" {
				t.Skip("runs with -tags nightly: curl and git find it")
			}
			if _, err := exec.LookPath(c.argv[0]); err != nil {
				t.Skipf("this machine has no %s", c.argv[0])
			}
			if c.name == "Maven" {
				command(t, "keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", caFile, "-keystore", filepath.Join(dir, "trust.p12"), "-storetype", "PKCS12", "-storepass", "changeit")
			}
			before := len(asked.seen())
			cmd := exec.Command(c.argv[0], c.argv[1:]...)
			cmd.Dir, cmd.Env = work, env
			if c.name == "cargo" {
				cmd.Dir = filepath.Join(work, "rust") // where the program looks for its settings
				cmd.Args[len(cmd.Args)-1] = "Cargo.toml"
			}
			var out []byte
			var err error
			room.do(func() { out, err = cmd.CombinedOutput() })
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), c.want)
			var paths []string
			for _, request := range asked.seen()[before:] {
				paths = append(paths, request[0])
			}
			require.Contains(t, paths, c.asked)
		})
	}
	require.Empty(t, seen.seen())

	t.Run("there is no other way out", func(t *testing.T) {
		for _, argv := range [][]string{{"curl", "-sS", "--noproxy", "*", "--max-time", "5", "http://" + there4 + "/hello"}, {"curl", "-sS", "--noproxy", "*", "--max-time", "5", "http://" + here4 + "/hello"}} {
			var out []byte
			var err error
			room.do(func() { out, err = exec.Command(argv[0], argv[1:]...).CombinedOutput() })
			require.Error(t, err, "%s", out)
		}
	})
	t.Run("a server of one's own is reached without the proxy", func(t *testing.T) {
		greets(t, room.listen(t, "127.0.0.1:8080"), "a test's server")
		for _, argv := range [][]string{{"curl", "-sS", "http://localhost:8080/"}, {"curl", "-sS", "http://127.0.0.1:8080/"}, {strings.TrimSpace(string(python)), "-c", "import urllib.request; print(urllib.request.urlopen('http://localhost:8080/').read())"}} {
			var out []byte
			var err error
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Env = env
			room.do(func() { out, err = cmd.CombinedOutput() })
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "a test's server as")
		}
		require.Empty(t, seen.seen())
	})
	t.Run("a program says why it was refused", func(t *testing.T) {
		var out []byte
		cmd := exec.Command("curl", "-sS", "http://169.254.169.254/latest/meta-data/")
		cmd.Env = env
		room.do(func() { out, _ = cmd.CombinedOutput() })
		require.Equal(t, "pawl allows no connection to 169.254.169.254:80: 169.254.169.254 is link-local, where clouds keep their metadata and credentials.\n", string(out))
	})
}

// newCertificate returns a certificate for a name, and the authority that a program has to trust for it.
func newCertificate(t *testing.T, name string) (ca []byte, certificate tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	issuerKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	issuer := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root, err := x509.CreateCertificate(rand.Reader, issuer, issuer, issuerKey.Public(), issuerKey)
	require.NoError(t, err)
	leaf, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: issuer.NotBefore, NotAfter: issuer.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, issuer, key.Public(), issuerKey)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}), tls.Certificate{Certificate: [][]byte{leaf, root}, PrivateKey: key}
}

// registry has a package demo 1.0.0 for each of the programs.
func registry(t *testing.T, dir string) http.Handler {
	t.Helper()
	files := map[string][]byte{"/hello": []byte("hello\n")}
	archive := func(names map[string]string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		for name, text := range names {
			require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}))
			_, err := io.WriteString(w, text)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	zipped := func(names map[string]string) []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for name, text := range names {
			w, err := z.Create(name)
			require.NoError(t, err)
			_, err = io.WriteString(w, text)
			require.NoError(t, err)
		}
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	document := func(v any) []byte {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return b
	}
	type object = map[string]any

	files["/npm/demo/-/demo-1.0.0.tgz"] = archive(map[string]string{"package/package.json": `{"name":"demo","version":"1.0.0"}`})
	files["/npm/demo"] = document(object{"name": "demo", "description": "demo of npm", "dist-tags": object{"latest": "1.0.0"}, "versions": object{"1.0.0": object{
		"name": "demo", "version": "1.0.0", "description": "demo of npm", "dist": object{"tarball": "https://registry.test/npm/demo/-/demo-1.0.0.tgz"},
	}}})

	files["/simple/demo/"] = []byte(`<a href="/simple/demo-1.0.0-py3-none-any.whl">demo-1.0.0-py3-none-any.whl</a>`)
	files["/simple/demo-1.0.0-py3-none-any.whl"] = zipped(map[string]string{
		"demo/__init__.py": "", "demo-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0.0\n",
		"demo-1.0.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "demo-1.0.0.dist-info/RECORD": "",
	})

	const module = "module example.test/demo\n"
	files["/go/example.test/demo/@v/v1.0.0.info"] = document(object{"Version": "v1.0.0"})
	files["/go/example.test/demo/@v/v1.0.0.mod"] = []byte(module)
	files["/go/example.test/demo/@v/v1.0.0.zip"] = zipped(map[string]string{"example.test/demo@v1.0.0/go.mod": module, "example.test/demo@v1.0.0/demo.go": "package demo\n"})

	crate := archive(map[string]string{"demo-1.0.0/Cargo.toml": "[package]\nname = \"demo\"\nversion = \"1.0.0\"\nedition = \"2021\"\n", "demo-1.0.0/src/lib.rs": ""})
	files["/crates/demo/1.0.0/download"] = crate
	files["/index/config.json"] = document(object{"dl": "https://registry.test/crates"})
	files["/index/de/mo/demo"] = document(object{"name": "demo", "vers": "1.0.0", "deps": []any{}, "cksum": fmt.Sprintf("%x", sha256.Sum256(crate)), "features": object{}, "yanked": false})

	files["/maven/test/demo/1.0.0/demo-1.0.0.pom"] = []byte(`<project><modelVersion>4.0.0</modelVersion><groupId>test</groupId><artifactId>demo</artifactId><version>1.0.0</version><packaging>pom</packaging></project>`)

	bare := filepath.Join(dir, "git", "demo.git")
	for _, argv := range [][]string{
		{"git", "init", "-q", "--bare", bare},
		{"sh", "-c", `cd "$0" && tree=$(git mktree </dev/null) && commit=$(git -c user.name=x -c user.email=x@x commit-tree -m demo "$tree") && git update-ref refs/heads/main "$commit" && git symbolic-ref HEAD refs/heads/main && git update-server-info`, bare},
	} {
		command(t, argv...)
	}
	repository := http.FileServer(http.Dir(filepath.Join(dir, "git")))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/demo.git/") {
			repository.ServeHTTP(w, r)
		} else if b, known := files[r.URL.Path]; known {
			_, _ = w.Write(b)
		} else {
			http.NotFound(w, r)
		}
	})
}
