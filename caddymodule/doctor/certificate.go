package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// checkCertificate checks the root certificate of the home's own authority, if it has made one.
func checkCertificate(_ context.Context, s *Subject) []Finding {
	path := filepath.Join(string(s.Home), "caddy", "pki", "authorities", "local", "root.crt")
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return one(Problem, fmt.Sprintf("The root certificate %s can't be read: %v.", path, err), "See who owns the file.")
	}
	return ofRoot(path, content, time.Now(), nil)
}

// ofRoot checks a root certificate. trusted are the roots of the system; nil: those of this machine.
func ofRoot(path string, content []byte, now time.Time, trusted *x509.CertPool) []Finding {
	const again = "Stop the server, delete the folder of the file, start it again, and have devices trust the new one (lmcaddy trust)."
	block, _ := pem.Decode(content)
	if block == nil {
		return one(Problem, fmt.Sprintf("%s is no certificate.", path), again)
	}
	root, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return one(Problem, fmt.Sprintf("%s is no certificate: %v.", path, err), again)
	case now.After(root.NotAfter):
		return one(Problem, fmt.Sprintf("The root certificate %s expired on %s.", path, root.NotAfter.Format(time.DateOnly)), again)
	case now.Before(root.NotBefore):
		return one(Problem, fmt.Sprintf("The root certificate %s is not valid before %s.", path, root.NotBefore.Format(time.DateOnly)),
			"Set the machine's clock.")
	case root.NotAfter.Sub(now) < 30*24*time.Hour:
		return one(Warning, fmt.Sprintf("The root certificate %s expires on %s.", path, root.NotAfter.Format(time.DateOnly)), again)
	}
	if _, err := root.Verify(x509.VerifyOptions{
		Roots: trusted, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}); err != nil {
		return one(Warning, "Programs on this machine don't trust the certificates of tls internal.",
			"Run: lmcaddy trust. Other devices get the root certificate from /api/v1/root.crt.")
	}
	return ok("This machine trusts the certificates of tls internal, until %s.", root.NotAfter.Format(time.DateOnly))
}
