// Package warm keeps the states of prompts in files, which outlive the engines that computed them.
//
// A [Store] is a folder with the states of all models. A launch of an engine gets a [Shelf] of it, with the states that this
// launch can use, as its [Print] says, and a folder in which the engine writes and reads. A state goes this way:
//
//	file in Folder, written by the engine → Put → Find → Lay → file in Folder, read by the engine → Lift → Judge
//
// The store's folder:
//
//	key                  32 random bytes, the secret by which chains differ from others and descriptions are authenticated
//	written.json         the number of bytes written today
//	rates.json           what states have cost, by model
//	launch/<random>/     the folder of a shelf; all of them are removed when the store is opened
//	<print>/<id>.kv      a state, as the engine wrote it
//	<print>/<id>.json    its description: whose it is, the chain of its prompt, its size and its checksum
//
// [Rates.Balance] tells whether to restore a state is faster than to process the prompt again, by what was measured. It survives
// a restart, as does the size of a token of a state.
//
// A state is valid only with its description, which is written last and authenticated with the key. Whatever else is found
// when the store is opened (a half of a state, a description of another home, temporary files) is removed. So a crash at any
// moment loses at most the state that was being put.
//
// The file that an engine gets has the size and the checksum that it had when an engine wrote it: engines crash on files that
// are cut off, and give wrong answers with files that were changed.
//
// A store has one goroutine, which prunes every hour. A store whose folder can't be used, and one that is switched off, keep nothing.
package warm

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v3/disk"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// Print identifies what makes a state valid: two launches with the same Print can use each other's states.
type Print struct {
	Model        string   // the key
	Files        []string // the model's files, its projector's and its draft's: their content counts, not their names
	Engine       string   // the name of the engine
	Build        string   // its version
	Architecture string   // of the model
	Launch       string   // what else counts, in the engine's own words
}

// Query is a prompt for which a state is searched.
type Query struct {
	Owner   string
	Private bool // only states of this owner
	Prompt  prefix.Chain
	Context int // tokens that the state may have at most; 0: any number
}

// Found is a state that has something in common with a prompt.
type Found struct {
	ID     string
	Common int // tokens in common, estimated
	Tokens int // of the whole state
	Bytes  int64
}

// Settings are what the operator decides. Whatever they say, a tenth of the disk stays free, but at most 1 GiB. Where room is
// needed, the states of an owner with more than half of it go first, then the least recently used ones.
type Settings struct {
	Off    bool          // keep nothing; the states that there are are deleted
	Size   int64         // bytes of all states together; 0: a tenth of the disk's free space when the store was opened, at most 50 GiB
	Daily  int64         // bytes written in a day (UTC); 0: ten times the size, at least 64 and at most 256 GiB
	MaxAge time.Duration // since the last use of a state; 0: unlimited
}

// ErrOff is the error of a store that keeps nothing, because it is switched off or closed, or its folder can't be used.
var ErrOff = errors.New("no states of prompts are kept")

// ErrDeleted means that what a state belongs to was deleted while the state was saved.
var ErrDeleted = errors.New("the conversation, the owner or the model of the state was deleted meanwhile")

// tidyEvery is the time between two looks for states that are too old.
const tidyEvery = time.Hour

// Store is the folder of all states. Its methods are safe for concurrent use.
type Store struct {
	*folder

	now   func() time.Time
	disk  func() (free, total int64, err error)
	usual int64      // the size, unless Settings have one
	key   prefix.Key // of the folder's secret

	stop   chan struct{}
	tender sync.WaitGroup

	mu         sync.Mutex
	settings   Settings
	configured bool  // nothing is pruned before
	broken     error // why the folder can't be used
	closed     bool
	index
	shelves  map[*Shelf]bool
	puts     map[*put]bool // under way
	gone     gone
	verdicts map[kind]*verdict
	ledger   ledger
	rates    map[string]Rates   // by model
	learnt   bool               // rates aren't written yet
	counts   map[string]*Counts // by model
	pause    time.Time          // until then nothing is written, because the disk failed
	cramped  bool               // the log says that the disk is too full
}

// Option changes how a store sees the world.
type Option func(*Store)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(s *Store) { s.now = now } }

// SetDisk replaces the system's answer how many bytes of the disk are free, and how many it has. Nothing else may use the store meanwhile.
func (s *Store) SetDisk(disk func() (free, total int64, err error)) { s.disk = disk }

// Open opens the store in a folder, which it makes if there is none. No other process may use it. If the folder can't be used, the
// store keeps nothing, and Err says why. The error is that of a path that isn't absolute.
//
// The store has default Settings, but prunes nothing before the first call of Configure.
func Open(dir string, log *slog.Logger, options ...Option) (*Store, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("the folder for states of prompts, %q, isn't an absolute path", dir)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Store{
		folder: &folder{dir: dir, log: log}, now: time.Now, stop: make(chan struct{}), index: newIndex(), shelves: map[*Shelf]bool{},
		puts: map[*put]bool{}, verdicts: map[kind]*verdict{}, counts: map[string]*Counts{}, rates: map[string]Rates{},
		gone: gone{conversations: map[string]time.Time{}, owners: map[string]time.Time{}},
	}
	s.disk = func() (free, total int64, err error) {
		usage, err := disk.Usage(s.dir)
		if err != nil {
			return 0, 0, err
		}
		return int64(min(usage.Free, math.MaxInt64)), int64(min(usage.Total, math.MaxInt64)), nil
	}
	for _, option := range options {
		option(s)
	}
	if s.broken = s.load(); s.broken != nil {
		s.secret = newSecret()
		s.index = newIndex()
	}
	s.key = s.secret.chains()
	if s.broken != nil {
		return s, nil
	}
	s.usual = unknownSize
	if free, _, err := s.disk(); err == nil {
		s.usual = min(mostUsual, (free+s.held())/10) // what it holds was free before
	}
	s.tender.Go(func() {
		tick := time.Tick(tidyEvery)
		for {
			select {
			case <-tick:
				s.tidy()
			case <-s.stop:
				return
			}
		}
	})
	return s, nil
}

// Key returns the key of the chains. It is the same as long as the folder exists.
func (s *Store) Key() prefix.Key { return s.key }

// Err returns why the store's folder can't be used, for the operator; nil if it can.
func (s *Store) Err() error { return s.broken }

// Configure applies settings, to what is kept already as well. If states are to be kept and the folder can't be used, the log says
// so, and what to do.
func (s *Store) Configure(settings Settings) {
	s.mu.Lock()
	s.settings, s.configured = settings, true
	s.mu.Unlock()
	switch {
	case settings.Off:
		s.Clear(func(*Listed) bool { return true })
	case s.broken != nil:
		s.log.Error("states of prompts aren't kept, because their folder can't be used: make it a folder that belongs to the user who "+
			"runs the server and that this user can write, then restart; or switch them off (warm off)", "folder", s.dir, "error", s.broken)
	default:
		s.prune()
	}
}

// Close writes what is to be remembered. The shelves should have been closed before. Then the store keeps nothing more.
func (s *Store) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	s.tender.Wait()
	s.flush()
}

func (s *Store) tidy() {
	s.prune()
	s.flush()
}

// isOff reports whether nothing is kept. The caller holds mu.
func (s *Store) isOff() bool { return s.settings.Off || s.broken != nil || s.closed }
