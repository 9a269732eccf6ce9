package fetch

import (
	"github.com/shirou/gopsutil/v3/disk"
)

// spareBytes is the space to leave free on the disk.
const spareBytes = 64 << 20

func freeBytes(dir string) (int64, error) {
	usage, err := disk.Usage(dir)
	if err != nil {
		return 0, err
	}
	return int64(min(usage.Free, 1<<62)), nil
}

// checkSpace checks that the disk has room for the rest of a job and of all other downloads.
func (s *Jobs) checkSpace(j *job) error {
	free, err := s.free(s.models)
	if err != nil {
		s.log.Warn("how much of the disk is free isn't known", "folder", s.models, "error", err)
		return nil // writing will show
	}
	s.mu.Lock()
	all := s.sorted()
	s.mu.Unlock()
	others := int64(0)
	for _, o := range all {
		if o != j && o.snapshot().State == Downloading {
			others += o.left()
		}
	}
	need := j.left()
	if need == 0 || need+others+spareBytes <= free {
		return nil
	}
	beside := ""
	if others > 0 {
		beside = ", beside " + sized(others) + " of other downloads"
	}
	return errorf(NoSpace, "The disk has too little room: %s are to be fetched%s, and %s are free, of which %s have to stay free. "+
		"Free some space, or put the models folder on another disk.", sized(need), beside, sized(free), sized(spareBytes))
}
