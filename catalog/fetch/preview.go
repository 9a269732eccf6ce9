package fetch

import (
	"context"
)

// Preview is what a request would download.
type Preview struct {
	Job              // without an ID, unless there is a job for it already; its State is AlreadyDownloaded for a model on disk
	Sizes    []int64 // in bytes, of Files
	Left     int64   // bytes that would be fetched
	Others   int64   // bytes that other downloads have left to fetch
	Free     int64   // bytes of the disk that are free; -1: unknown
	FitsDisk bool
}

// Preview returns what Start would do, and does nothing. The errors are those of Start, except for a disk that is too full.
func (s *Jobs) Preview(ctx context.Context, request Request) (Preview, error) {
	rec, there, err := s.prepare(ctx, request)
	if err != nil {
		return Preview{}, err
	}
	if rec == nil {
		return Preview{Job: there, Free: -1, FitsDisk: true}, nil
	}
	if j := s.sameJob(rec); j != nil {
		return s.preview(j), nil
	}
	if rec.elsewhere != "" || s.areThere(rec.Files) {
		return Preview{Job: s.already(rec), Free: -1, FitsDisk: true}, nil
	}
	return s.preview(s.planned(rec)), nil
}

// sameJob returns a job for the same files as a plan that isn't completed, or nil.
func (s *Jobs) sameJob(rec *record) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.sorted() {
		j.mu.Lock()
		is := j.record.sameAs(rec) && j.record.State != Completed
		j.mu.Unlock()
		if is {
			return j
		}
	}
	return nil
}

func (s *Jobs) preview(j *job) Preview {
	r := s.roomFor(j)
	p := Preview{Job: j.snapshot(), Left: r.need, Others: r.others, Free: r.free, FitsDisk: r.isEnough()}
	if !r.known {
		p.Free = -1
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, f := range j.record.Files {
		p.Sizes = append(p.Sizes, f.Size)
	}
	return p
}
