package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

// checkSandbox checks that engines run in a sandbox.
func checkSandbox(_ context.Context, s *Subject) (found findings) {
	if s.configured(node.BuiltIn()[0].Name, "sandbox") == "off" {
		found.warn("Leave that out, unless an engine doesn't work in it.", "Engines run without a sandbox: the configuration says sandbox off.")
		return found
	}
	return ofSandbox(process.SandboxState())
}

func ofSandbox(state string) (found findings) {
	if strings.HasPrefix(state, "not available") {
		found.warn("On Linux it needs a kernel with Landlock (5.13 or later, with landlock among its security modules).",
			"Engines run without a sandbox: it is %s.", state)
	} else {
		found.ok("Engines run in a sandbox (%s).", state)
	}
	return found
}

// checkCertificate checks the root certificate of the home's own authority, if it has made one.
func checkCertificate(_ context.Context, s *Subject) (found findings) {
	path := filepath.Join(string(s.Home), "caddy", "pki", "authorities", "local", "root.crt")
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	return ofRoot(path, content, time.Now(), nil)
}

// ofRoot checks a root certificate. trusted are the roots of the system; nil: those of this machine.
func ofRoot(path string, content []byte, now time.Time, trusted *x509.CertPool) (found findings) {
	var root *x509.Certificate
	block, _ := pem.Decode(content)
	if block != nil {
		root, _ = x509.ParseCertificate(block.Bytes) // nil after an error
	}
	if root == nil || now.After(root.NotAfter) || now.Before(root.NotBefore) {
		found.problem("Stop the server, delete the folder of the file, start it again, and have devices trust the new one (lmcaddy trust).",
			"The root certificate %s can't be read, or isn't valid now.", path)
		return found
	}
	all := x509.VerifyOptions{Roots: trusted, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	if _, err := root.Verify(all); err != nil {
		found.warn("Run: lmcaddy trust. Other devices get the root certificate from /api/v1/root.crt.",
			"Programs on this machine don't trust the certificates of tls internal.")
	} else {
		found.ok("This machine trusts the certificates of tls internal, until %s.", root.NotAfter.Format(time.DateOnly))
	}
	return found
}
