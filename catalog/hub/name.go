package hub

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// The endings of files that are being downloaded, and of those that say how far.
const (
	PartSuffix       = ".part"
	CheckpointSuffix = ".part.json"
)

// LocalPath converts a file's path in a repository into a path below the folder of a model. It rejects unsafe paths, and the
// names of partial files.
func LocalPath(path string) (string, error) {
	for name := range strings.SplitSeq(strings.ToLower(path), "/") {
		if strings.HasSuffix(name, PartSuffix) || strings.HasSuffix(name, CheckpointSuffix) {
			return "", fmt.Errorf("the name %q is one of a partial file", name)
		}
	}
	return filename.Local(path)
}

// CheckRepo checks that publisher/repository is a valid repository of a hub, and a valid folder.
func CheckRepo(publisher, repo string) error {
	if err := filename.CheckFolder(publisher); err != nil {
		return err
	}
	return filename.CheckFolder(repo)
}

var revisionPart = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// checkRevision checks that a name is a valid branch, tag or commit.
func checkRevision(revision string) error {
	bad := func(part string) bool { return !revisionPart.MatchString(part) || strings.Contains(part, "..") }
	if slices.ContainsFunc(strings.Split(revision, "/"), bad) {
		return fmt.Errorf("%q is not the name of a revision", revision)
	}
	return nil
}
