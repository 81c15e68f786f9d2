package pass

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"pawl/internal/durable"
	"pawl/internal/shell"
)

const (
	profileName     = "temporal.toml"
	certificateName = "certificate.pem"
	// Profile is what the profile of the Temporal CLI is called.
	Profile = "pawl"
)

// ProfilePath is the file with the profile for the Temporal CLI, in the engine's folder: the user's own
// file is never written, and may be readable where the engine's folder is not.
func ProfilePath(dir string) string { return filepath.Join(dir, profileName) }

// WithProfile is the Temporal CLI with the profile of the engine in dir, as a person types it.
func WithProfile(dir string) string {
	return shell.Join("temporal", "--config-file", ProfilePath(dir), "--profile", Profile)
}

// WriteProfile writes the profile by which the Temporal CLI reaches the engine at an address.
func (p *Pass) WriteProfile(dir, address, namespace string) error {
	certificate := filepath.Join(dir, certificateName)
	// The certificate has a file of its own: the CLI up to 1.5 does not take it as data.
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

// quote writes a string as TOML does, which takes JSON's.
func quote(text string) string {
	b, _ := json.Marshal(text) // a string always can be
	return string(b)
}
