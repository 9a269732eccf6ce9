package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/shirou/gopsutil/v3/disk"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

const chooseHome = "LMCADDY_HOME chooses another folder."

// checkHome checks that the home is this user's, and nobody else's, unless it is a volume of a container.
func checkHome(_ context.Context, s *Subject) (found findings) {
	dir := string(s.Home)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found.ok("The home %s doesn't exist yet: the first command that needs it makes it.", dir)
	case err != nil:
		return found.problem("Give it to the user who runs lmcaddy (chown), or choose another: "+chooseHome,
			"The home %s can't be read: %v.", dir, err)
	case !info.IsDir():
		return found.problem("Move the file away. "+chooseHome, "The home %s is not a folder.", dir)
	}
	isVolume := s.Home.IsVolume()
	if !ownedByUs(info) && !isVolume {
		found.problem("Run lmcaddy as that user, or give the folder to this one (chown -R). "+chooseHome,
			"The home %s belongs to another user.", dir)
	}
	if mode := info.Mode().Perm(); hasModes && mode&0o077 != 0 && !isVolume {
		found.warn("Run: chmod 700 "+dir, "Other users can look into the home %s: its mode is %#o.", dir, mode)
	}
	f, err := os.CreateTemp(dir, ".doctor-")
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		err = cause.Err
	}
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		found.problem("See who owns it and how its disk is mounted. "+chooseHome, "Nothing can be written to the home %s: %v.", dir, err)
	}
	if len(s.Home.Socket()) > home.MaxSocketPath {
		found.problem("Choose a shorter path with LMCADDY_HOME.",
			"The path of the home %s is too long for the sockets in it, which may have %d bytes.", dir, home.MaxSocketPath)
	}
	if len(found) == 0 {
		found.ok("The home is %s.", dir)
	}
	return found
}

// Free space below which there is a problem or a warning, in bytes.
const (
	noSpace     = 1e9
	littleSpace = 10e9
)

func checkDisk(_ context.Context, s *Subject) (found findings) {
	at := string(s.Home) // or the nearest folder above it that exists
	for _, err := os.Stat(at); err != nil && at != filepath.Dir(at); _, err = os.Stat(at) {
		at = filepath.Dir(at)
	}
	if kind := networkFileSystem(at); kind != "" {
		found.warn("Move the home to a local disk, and choose it with LMCADDY_HOME; the models may stay where they are (models_dir).",
			"The home is on a network file system (%s), where the database can be damaged and locks may not work.", kind)
	}
	usage, err := disk.Usage(at)
	if err != nil {
		return found.warn("See whether the disk is mounted.", "How much of the disk is free isn't known: %v.", err)
	}
	return append(found, ofSpace(usage.Free)...)
}

func ofSpace(free uint64) (found findings) {
	const advice = `Free some space; "lmcaddy rm" deletes models.`
	switch said := humanize.Bytes(free); {
	case free < noSpace:
		found.problem(advice, "Only %s of the home's disk are free: conversations and downloads will fail.", said)
	case free < littleSpace:
		found.warn(advice, "%s of the home's disk are free, which is less than many models take.", said)
	default:
		found.ok("%s of the home's disk are free.", said)
	}
	return found
}

// checkStore checks the database of conversations and tokens.
func checkStore(ctx context.Context, s *Subject) (found findings) {
	if said := s.setting("store"); strings.HasPrefix(said, "postgres") {
		var err error
		switch {
		case s.Server != nil:
			_, err = s.Server.Tokens(ctx)
		case s.Config.PostgresURL != "":
			err = store.CheckPostgres(ctx, s.Config.PostgresURL)
		}
		if err != nil {
			return found.problem("See whether PostgreSQL runs, and whether the address in the option store is right.",
				"The database can't be used: %s.", strings.TrimSuffix(err.Error(), "."))
		}
		return found.ok("The database answers (%s).", said)
	}
	file := s.Home.Database()
	info, err := os.Stat(file)
	if os.IsNotExist(err) {
		return found.ok("Nothing is stored yet.")
	}
	if err == nil && hasModes && info.Mode().Perm()&0o077 != 0 {
		found.warn("Run: chmod 600 "+file, "Other users can read the conversations and tokens in %s.", file)
	}
	if err := store.Check(ctx, file); err != nil {
		return found.problem("Stop lmcaddy, and put a backup in its place, or save what can be read with `sqlite3 FILE .recover`.",
			"The database is damaged or can't be read: %v.", strings.TrimSuffix(err.Error(), "."))
	}
	return found.ok("The database %s is intact.", file)
}

// soon is when a token that will expire is mentioned.
const soon = 14 * 24 * time.Hour

func checkTokens(ctx context.Context, s *Subject) (found findings) {
	if s.Tokens == nil {
		return nil
	}
	tokens, err := s.Tokens(ctx)
	if err != nil {
		return found.warn(`See "lmcaddy token ls".`, "The tokens can't be listed: %s.", strings.TrimSuffix(err.Error(), "."))
	}
	return ofTokens(tokens, time.Now())
}

func ofTokens(tokens []resource.Token, now time.Time) (found findings) {
	for _, t := range tokens {
		if t.Expires == nil || t.Expires.Sub(now) >= soon {
			continue
		}
		name := t.ID
		if t.Name != "" {
			name += " (" + t.Name + ")"
		}
		extend := fmt.Sprintf("lmcaddy token edit %s --expires DURATION extends it", t.ID)
		if t.Expires.After(now) {
			found.warn(extend+".", "The token %s expires on %s.", name, t.Expires.Local().Format("2006-01-02 15:04"))
		} else {
			found.warn(extend+", lmcaddy token revoke "+t.ID+" deletes it.", "The token %s has expired.", name)
		}
	}
	switch {
	case len(tokens) == 0:
		found.ok("There are no tokens.")
	case len(found) == 0:
		found.ok("%s, and none expires soon.", upperFirst(count(len(tokens), "token exists", "tokens exist")))
	}
	return found
}

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
