package runs

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
)

const (
	runBytes      = 16 << 20  // bounds the log of one run. An event of a stream has about 200 bytes, one for each token.
	runBytesInAll = 128 << 20 // bounds the logs of all runs
	runOverhead   = 4 << 10   // what a run counts beside its log, so that even empty ones are bounded
	frameOverhead = 32        // what a frame counts beside its bytes
	runPiece      = 64 << 10  // how much of a log a reader gets at a time
)

// ErrTrimmed says that a log no longer has the part that a reader asked for.
var ErrTrimmed = errors.New("the beginning of the run's log is no longer kept")

// runLog is what a run has said: numbered frames, of which the oldest may have been dropped.
type runLog struct {
	frames [][]byte
	first  int           // the number of frames[0]
	bytes  int           // that are counted
	more   chan struct{} // closed when there is more, or the log is over; nil: nobody waits
}

func (l *runLog) next() int { return l.first + len(l.frames) }

func (l *runLog) wake() {
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
}

func (l *runLog) clear() {
	l.first, l.frames, l.bytes = l.next(), nil, 0
	l.wake()
}

// Append adds a frame to the log. Its number is that of the last one and 1; the first is 0. If the log is too long, the oldest frames
// are dropped: the run goes on, and so do readers that keep up with it.
func (r *Run) Append(frame []byte) {
	all := r.all
	all.mu.Lock()
	defer all.mu.Unlock()
	r.log.frames = append(r.log.frames, append([]byte(nil), frame...))
	if all.of[r.ID] != r { // it was forgotten, so nobody reads it
		r.log.clear()
		return
	}
	all.count(r, len(frame)+frameOverhead)
	for r.log.bytes > all.perRun && all.trim(r) {
	}
	r.log.wake()
}

// count counts bytes of a run. While all runs together have too many, the owner with the most bytes loses some: the logs of runs that
// have ended, and then the beginnings of the others. The caller holds all.mu.
func (all *Runs) count(r *Run, bytes int) {
	r.log.bytes += bytes
	all.held += bytes
	for all.held > all.inTotal {
		owners := map[string]int{}
		for _, other := range all.of {
			owners[other.Owner] += other.log.bytes
		}
		most := slices.Max(slices.Collect(maps.Values(owners)))
		var ended, largest *Run
		for _, other := range all.of {
			switch {
			case owners[other.Owner] < most:
			case other.forget != nil && (ended == nil || other.log.bytes > ended.log.bytes):
				ended = other
			case largest == nil || other.log.bytes > largest.log.bytes:
				largest = other
			}
		}
		if ended != nil {
			all.drop(ended)
		} else if largest == nil || !all.trim(largest) {
			return
		}
	}
}

// trim drops the oldest eighth of a log's frames, since one by one would take long. The newest stays. The caller holds all.mu.
func (all *Runs) trim(r *Run) bool {
	l := &r.log
	n := min(len(l.frames)/8+1, len(l.frames)-1)
	if n <= 0 {
		return false
	}
	for _, frame := range l.frames[:n] {
		l.bytes -= len(frame) + frameOverhead
		all.held -= len(frame) + frameOverhead
	}
	clear(l.frames[:n]) // the array stays, its frames don't
	l.frames = l.frames[n:]
	l.first += n
	return true
}

// Follow appends frames of the log to dst, beginning with the number from, and returns the number of the next. It waits until there is
// a frame. The error is [io.EOF] after the last frame, [ErrTrimmed] if the frame isn't kept any more, or that of ctx.
func (r *Run) Follow(ctx context.Context, dst []byte, from int) (_ []byte, next int, _ error) {
	for {
		dst, next, more, err := r.read(dst, from)
		if more == nil {
			return dst, next, err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return dst, from, ctx.Err()
		}
	}
}

// read returns a channel if it has to be waited for.
func (r *Run) read(dst []byte, from int) (_ []byte, next int, more <-chan struct{}, _ error) {
	all := r.all
	all.mu.Lock()
	defer all.mu.Unlock()
	l := &r.log
	switch {
	case from < l.first:
		return dst, from, nil, ErrTrimmed
	case from < l.next():
		begin := len(dst)
		for _, frame := range l.frames[from-l.first:] {
			if len(dst) > begin && len(dst)+len(frame) > begin+runPiece {
				break
			}
			dst = append(dst, frame...)
			from++
		}
		return dst, from, nil, nil
	case r.HasEnded():
		return dst, from, nil, io.EOF
	}
	if l.more == nil {
		l.more = make(chan struct{})
	}
	return dst, from, l.more, nil
}
