package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/shell"
)

const (
	profileName     = "temporal.toml"
	certificateName = "certificate.pem"
	// Profile is the name of the profile for the Temporal CLI.
	Profile = "pawl"
)

// ProfilePath returns the file with the profile for the Temporal CLI, in the engine's folder. pawl never writes the
// user's own file, which others may be able to read.
func ProfilePath(dir string) string { return filepath.Join(dir, profileName) }

// WithProfile returns the command of the Temporal CLI with the profile of the engine in dir, as a person types it.
func WithProfile(dir string) string {
	return shell.Join("temporal", "--config-file", ProfilePath(dir), "--profile", Profile)
}

// WriteProfile writes the profile with which the Temporal CLI reaches the engine at an address.
func (p *Pass) WriteProfile(dir, address, namespace string) error {
	certificate := filepath.Join(dir, certificateName)
	// The certificate has its own file, because the CLI up to 1.5 does not accept it as data.
	text := fmt.Sprintf(`# pawl writes this each time its engine starts: %s workflow list
[profile.%s]
address = %s
namespace = %s
api_key = %s
tls.server_name = %s
tls.server_ca_cert_path = %s
`, WithProfile(dir), Profile, quote(address), quote(namespace), quote(p.Token), quote(ServerName), quote(certificate))
	err := errors.Join(durable.WriteFile(certificate, []byte(p.Certificate), 0o600), durable.WriteFile(ProfilePath(dir), []byte(text), 0o600))
	if err != nil {
		return fmt.Errorf("writing the profile for the Temporal CLI: %w", err)
	}
	return nil
}

// quote returns a string in TOML, which accepts JSON's form.
func quote(text string) string {
	b, _ := json.Marshal(text) // a string always can be encoded
	return string(b)
}
