// Package auth holds the credentials of an embedded engine that requires them: a token, which pawl's own clients and a
// profile for the Temporal CLI send, and a certificate, by which clients recognise the engine and the engine's services
// recognise one another. Both are in one file in the engine's folder, which only this user can read. The package knows
// no Temporal, listens nowhere and prints nothing. Start at Settle.
package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/must"
)

// Pass is the token, certificate and key of an engine. Certificate and key are in PEM.
type Pass struct {
	Token       string `json:"token"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// Wish says whether somebody wants an engine to require a token.
type Wish int

// The wishes. AsBefore requires a token if the folder has a pass.
const (
	AsBefore Wish = iota
	Wanted
	Unwanted
)

// ServerName is the name in the engine's certificate.
const ServerName = "pawl-engine"

// EngineHeader is the header with the ID of the engine for which a call is meant. Another engine may have taken the
// port.
const EngineHeader = "pawl-engine"

// AnotherEngine is the message for a call that is meant for another engine.
const AnotherEngine = "another engine is at this address now"

const fileName = "pass.json"

// Settle returns the pass of an engine that is about to start in dir, nil if the engine is to require no token. It
// replaces a pass that is damaged or that other users could read.
func Settle(dir string, w Wish) (*Pass, error) {
	if w == Unwanted {
		for _, name := range []string{fileName, profileName, certificateName} {
			if err := os.Remove(dirfd.At(filepath.Join(dir, name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("removing the engine's pass: %w", err)
			}
		}
		return nil, nil
	}
	p, err := Read(dir)
	if p != nil || w == AsBefore && err == nil {
		return p, nil
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("closing the engine's folder to other users: %w", err)
	}
	if p, err = generate(); err == nil {
		err = durable.WriteJSON(filepath.Join(dir, fileName), p)
	}
	if err != nil {
		return nil, fmt.Errorf("making the engine's pass: %w", err)
	}
	return p, nil
}

// Read returns the pass of the engine in dir, nil if there is none. It returns an error if the pass can't be used: it
// is damaged, or other users may read it.
func Read(dir string) (*Pass, error) {
	path := filepath.Join(dir, fileName)
	info, err := os.Stat(dirfd.At(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the engine's pass: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("other users may read the engine's pass %s (mode %04o)", path, info.Mode().Perm())
	}
	p := new(Pass)
	if err := durable.ReadJSON(path, p); err != nil {
		return nil, fmt.Errorf("reading the engine's pass: %w", err)
	}
	if _, err := p.pair(); err != nil || len(p.Token) != 2*tokenSize {
		return nil, fmt.Errorf("reading the engine's pass: %s: %w", path, durable.ErrTorn)
	}
	return p, nil
}

// tokenSize is the token's length in bytes. The token is written in hexadecimal digits.
const tokenSize = 32

func generate() (*Pass, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: ServerName},
		DNSNames: []string{ServerName},
		// The certificate is valid as long as its file is there, whatever this machine's clock says.
		NotBefore:             time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	token := make([]byte, tokenSize)
	rand.Read(token)
	return &Pass{
		Token:       hex.EncodeToString(token),
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
	}, nil
}

// Opens reports whether a header `authorization` has the token.
func (p *Pass) Opens(authorization string) bool {
	return subtle.ConstantTimeCompare([]byte(authorization), []byte("Bearer "+p.Token)) == 1
}

// Sign returns a signature of a text that only somebody with the token can make.
func (p *Pass) Sign(text string) string {
	mac := hmac.New(sha256.New, []byte(p.Token))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// Server returns the TLS settings of the frontend, which serves everybody. Only the engine itself has the certificate.
func (p *Pass) Server() *tls.Config {
	certificate := must.Have(p.pair()) // Read and generate return no pass without a valid pair
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}, ClientCAs: p.pool(), ClientAuth: tls.VerifyClientCertIfGiven}
}

// Inner returns the TLS settings of the engine's other services, which serve only the engine itself.
func (p *Pass) Inner() *tls.Config {
	c := p.Server()
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c
}

// Insider returns the TLS settings with which the engine calls itself.
func (p *Pass) Insider() *tls.Config {
	c := p.Client()
	c.Certificates = p.Server().Certificates
	return c
}

// Client returns the TLS settings of somebody with the token. They refuse any other program in the engine's place.
func (p *Pass) Client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: p.pool(), ServerName: ServerName}
}

func (p *Pass) pair() (tls.Certificate, error) {
	return tls.X509KeyPair([]byte(p.Certificate), []byte(p.Key))
}

func (p *Pass) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(p.Certificate))
	return pool
}
