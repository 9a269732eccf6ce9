package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/shirou/gopsutil/v3/disk"

	"github.com/lmcaddy/lmcaddy/internal/home"
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
