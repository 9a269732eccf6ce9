package store

import "testing"

// TestGather_IsBounded: a group is limited by its number of jobs and, approximately, by its size.
func TestGather_IsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ waiting, size, want int }{
		"few":                {3, 1, 3},
		"just enough":        {groupJobs, 1, groupJobs},
		"too many":           {groupJobs + 1, 1, groupJobs},
		"too large":          {9, groupBytes / 4, 4},
		"each is too large":  {3, groupBytes, 1},
		"the last overflows": {9, groupBytes/4 - 1, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &writer{db: &sqliteFile{}, queue: make(chan *job, c.waiting)}
			for range c.waiting {
				s.queue <- &job{size: c.size}
			}
			if got := len(s.gather([]*job{<-s.queue})); got != c.want {
				t.Errorf("%d jobs of %d bytes that wait: a group of %d, not %d", c.waiting, c.size, got, c.want)
			}
		})
	}
}
