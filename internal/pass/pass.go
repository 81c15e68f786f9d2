// Package pass holds the credentials of an embedded engine that requires them: a token, which pawl's own clients and a
// profile for the Temporal CLI send, and a certificate, by which clients recognise the engine and the engine's services
// recognise one another. Both are in one file in the engine's folder, which only this user can read. The package knows
// no Temporal, listens nowhere and prints nothing. Start at Settle.
package pass

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
	"math/big"
	"os"
	"path/filepath"
	"time"

	"pawl/internal/durable"
	"pawl/internal/held"
)

// Pass is the token and the certificate of an engine, both in PEM where they are no token.
type Pass struct {
	Token       string `json:"token"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// Wish is what somebody wants of an engine.
type Wish int

// The wishes. AsBefore requires a token where the folder has a pass.
const (
	AsBefore Wish = iota
	Wanted
	Unwanted
)

// ServerName is what the engine's certificate is made out to.
const ServerName = "pawl-engine"

// EngineHeader is what a call says in which engine it is for, by that one's ID: ports are taken by others.
const EngineHeader = "pawl-engine"

// AnotherEngine is how a call that is for another engine is refused.
const AnotherEngine = "another engine is at this address now"

const fileName = "pass.json"

// Settle returns the pass by which an engine that is about to start in dir requires a token, nil where it is to
// ask nobody. One that other users could have read, or that is damaged, is made anew.
func Settle(dir string, w Wish) (*Pass, error) {
	p, err := Read(dir)
	there := p != nil || err != nil
	switch {
	case w == Unwanted:
		for _, name := range []string{fileName, profileName, certificateName} {
			if err := os.Remove(held.At(filepath.Join(dir, name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("removing the engine's pass: %w", err)
			}
		}
		return nil, nil
	case p != nil || w == AsBefore && !there:
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

// Read returns the pass of the engine in dir, nil where it has none. An error means that there is one which
// can't be used: it is damaged, or other users may read it.
func Read(dir string) (*Pass, error) {
	path := filepath.Join(dir, fileName)
	info, err := os.Stat(held.At(path))
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

// tokenSize is the token's length in bytes; it is written in hexadecimal digits.
const tokenSize = 32

func generate() (*Pass, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: ServerName},
		DNSNames:     []string{ServerName},
		// It is good for as long as its file is there, whatever this machine's clock says.
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

// Opens reports whether a header `authorization` brings the token.
func (p *Pass) Opens(authorization string) bool {
	return subtle.ConstantTimeCompare([]byte(authorization), []byte("Bearer "+p.Token)) == 1
}

// Sign is what only who has the token can say of a text.
func (p *Pass) Sign(text string) string {
	mac := hmac.New(sha256.New, []byte(p.Token))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// Server is how the frontend listens: to everybody, and only the engine itself has the certificate.
func (p *Pass) Server() *tls.Config {
	own, err := p.pair()
	if err != nil { // Read and generate let none pass
		panic(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, ClientCAs: p.pool(), ClientAuth: tls.VerifyClientCertIfGiven}
}

// Inner is how the engine's other services listen: to the engine itself alone.
func (p *Pass) Inner() *tls.Config {
	c := p.Server()
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c
}

// Insider is how the engine calls itself.
func (p *Pass) Insider() *tls.Config {
	c := p.Client()
	c.Certificates = p.Server().Certificates
	return c
}

// Client is how whoever has the token calls the engine, and no other program that is in its place.
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
