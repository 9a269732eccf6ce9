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

func checkSandbox(_ context.Context, s *Subject) (found findings) {
	if s.configured(node.BuiltIn()[0].Name, "sandbox") == "off" {
		return found.warn("Leave that out, unless an engine doesn't work in it.",
			"Engines run without a sandbox: the configuration says sandbox off.")
	}
	return ofSandbox(process.SandboxState())
}

func ofSandbox(state string) (found findings) {
	if strings.HasPrefix(state, "not available") {
		return found.warn("On Linux it needs a kernel with Landlock (5.13 or later, with landlock among its security modules).",
			"Engines run without a sandbox: it is %s.", state)
	}
	return found.ok("Engines run in a sandbox (%s).", state)
}

// enoughFiles is how many files a server with many clients has open.
const enoughFiles = 4096

// ofLimits is about the most files that a process may open, and the most memory that it may take, in bytes. 0 is unlimited.
func ofLimits(files, memory uint64) (found findings) {
	if files > 0 && files < enoughFiles {
		found.warn("Raise the limit: LimitNOFILE in the systemd unit, or ulimit -n in the shell that starts the server.",
			"A process may open only %d files, and each client, engine and model takes some.", files)
	}
	if memory > 0 {
		found.warn("Start the server without that limit: ulimit -v unlimited",
			"The memory of processes is limited (ulimit -v): engines map whole models, and fail to load them.")
	}
	if len(found) == 0 {
		found.ok("The limits of this user's processes are high enough.")
	}
	return found
}

// checkClock checks the machine's clock: certificates, tokens and usage depend on it.
func checkClock(_ context.Context, s *Subject) findings {
	var newest time.Time
	for _, path := range []string{s.Home.Database(), s.Home.Database() + "-wal", s.Home.Lock(), s.Home.Catalog()} {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return ofClock(time.Now(), newest)
}

func ofClock(now, newest time.Time) (found findings) {
	const advice = "Set it, or have it set over the network (timedatectl set-ntp true)."
	switch {
	case now.Year() < 2026: // before this program was made
		found.problem(advice, "The machine's clock is wrong: it says %s.", now.Format(time.DateTime))
	case newest.Sub(now) > time.Hour:
		found.warn(advice, "The machine's clock went back: it says %s, and the home has a file of %s.", now.Format(time.DateTime),
			newest.Format(time.DateTime))
	default:
		found.ok("The machine's clock says %s.", now.Format(time.RFC3339))
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
	if err != nil {
		return found.problem("See who owns the file.", "The root certificate %s can't be read: %v.", path, err)
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
	const again = "Stop the server, delete the folder of the file, start it again, and have devices trust the new one (lmcaddy trust)."
	switch {
	case root == nil:
		return found.problem(again, "%s is no certificate.", path)
	case now.After(root.NotAfter):
		return found.problem(again, "The root certificate %s expired on %s.", path, root.NotAfter.Format(time.DateOnly))
	case now.Before(root.NotBefore):
		return found.problem("Set the machine's clock.", "The root certificate %s is not valid before %s.", path,
			root.NotBefore.Format(time.DateOnly))
	case root.NotAfter.Sub(now) < 30*24*time.Hour:
		return found.warn(again, "The root certificate %s expires on %s.", path, root.NotAfter.Format(time.DateOnly))
	}
	all := x509.VerifyOptions{Roots: trusted, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	if _, err := root.Verify(all); err != nil {
		return found.warn("Run: lmcaddy trust. Other devices get the root certificate from /api/v1/root.crt.",
			"Programs on this machine don't trust the certificates of tls internal.")
	}
	return found.ok("This machine trusts the certificates of tls internal, until %s.", root.NotAfter.Format(time.DateOnly))
}
