package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/shirou/gopsutil/v3/disk"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

const chooseHome = "LMCADDY_HOME chooses another folder."

// checkHome checks that the home is this user's, and nobody else's, unless it is a volume of a container.
func checkHome(_ context.Context, s *Subject) []Finding {
	dir := string(s.Home)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ok("The home %s doesn't exist yet: the first command that needs it makes it.", dir)
	case err != nil:
		return one(Problem, fmt.Sprintf("The home %s can't be read: %v.", dir, err),
			"Give it to the user who runs lmcaddy (chown), or choose another: "+chooseHome)
	case !info.IsDir():
		return one(Problem, fmt.Sprintf("The home %s is not a folder.", dir), "Move the file away. "+chooseHome)
	}
	var found []Finding
	isVolume := s.Home.IsVolume()
	if !ownedByUs(info) && !isVolume {
		found = append(found, one(Problem, fmt.Sprintf("The home %s belongs to another user.", dir),
			"Run lmcaddy as that user, or give the folder to this one (chown -R). "+chooseHome)...)
	}
	if mode := info.Mode().Perm(); hasModes && mode&0o077 != 0 && !isVolume {
		found = append(found, one(Warning, fmt.Sprintf("Other users can look into the home %s: its mode is %#o.", dir, mode),
			fmt.Sprintf("Run: chmod 700 %s", dir))...)
	}
	if err := tryWriting(dir); err != nil {
		found = append(found, one(Problem, fmt.Sprintf("Nothing can be written to the home %s: %v.", dir, err),
			"See who owns it and how its disk is mounted. "+chooseHome)...)
	}
	if len(s.Home.Socket()) > home.MaxSocketPath {
		found = append(found,
			one(Problem, fmt.Sprintf("The path of the home %s is too long for the sockets in it, which may have %d bytes.", dir,
				home.MaxSocketPath), "Choose a shorter path with LMCADDY_HOME.")...)
	}
	if worst(found) == OK {
		found = append(found, ok("The home is %s.", dir)...)
	}
	return found
}

// tryWriting makes a file in a folder, and removes it.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			return cause.Err
		}
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Free space below which there is a problem or a warning, in bytes.
const (
	noSpace     = 1e9
	littleSpace = 10e9
)

// checkDisk checks the file system that the home is on.
func checkDisk(_ context.Context, s *Subject) []Finding {
	at := existing(string(s.Home))
	var found []Finding
	if kind := networkFileSystem(at); kind != "" {
		found = append(found,
			one(Warning, fmt.Sprintf("The home is on a network file system (%s), where the database can be damaged and locks may "+
				"not work.", kind),
				"Move the home to a local disk, and choose it with LMCADDY_HOME; the models may stay where they are (models_dir).")...)
	}
	usage, err := disk.Usage(at)
	if err != nil {
		return append(found, one(Warning, fmt.Sprintf("How much of the disk is free isn't known: %v.", err),
			"See whether the disk is mounted.")...)
	}
	return append(found, ofSpace(usage.Free)...)
}

func ofSpace(free uint64) []Finding {
	said := humanize.Bytes(free)
	switch {
	case free < noSpace:
		return one(Problem, fmt.Sprintf("Only %s of the home's disk are free: conversations and downloads will fail.", said),
			`Free some space; "lmcaddy rm" deletes models.`)
	case free < littleSpace:
		return one(Warning, fmt.Sprintf("%s of the home's disk are free, which is less than many models take.", said),
			`Free some space; "lmcaddy rm" deletes models.`)
	default:
		return ok("%s of the home's disk are free.", said)
	}
}

// existing is a path, or the nearest folder above it that exists.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil {
			return path
		}
		above := filepath.Dir(path)
		if above == path {
			return path
		}
		path = above
	}
}
