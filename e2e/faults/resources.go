package faults

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sys/unix"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// storePatience is how long lmcaddy waits for SQLite's write lock.
const storePatience = 10 * time.Second

// lockStore takes the write lock of a SQLite database as another program would: in WAL mode, that is one byte of the shared
// memory file.
func (r *round) lockStore(s *harness.Server) (unlock func()) {
	const writeLock = 120 // WAL_WRITE_LOCK of SQLite's wal.c
	f, err := os.OpenFile(filepath.Join(s.Dir, "lmcaddy.db-shm"), os.O_RDWR, 0)
	if err != nil {
		r.Fatal(err)
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: writeLock, Len: 1}
	harness.Eventually(r, harness.Patience, "the lock is free", func() bool {
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock) == nil
	})
	return func() { _ = f.Close() } // which releases the lock
}

func (r *round) lockedFor(held time.Duration, some ...outcome) {
	s, _ := r.loaded(r.parallel())
	s.NativeChat(harness.NativeAsk("Hello").With("max_output_tokens", 4))
	unlock := r.lockStore(s)
	unlocked := time.AfterFunc(held, unlock)
	r.Cleanup(func() {
		if unlocked.Stop() {
			unlock()
		}
	})
	begun := time.Now()
	c := r.crowd()
	for range 1 + r.upTo(5) {
		c.ask(s, harness.NativeChatPath, harness.NativeAsk("Hello").With("max_output_tokens", 4))
	}
	c.ask(s, harness.ChatPath, harness.Ask(capital)) // isn't stored, so it doesn't wait
	k := &stored{}
	for _, one := range c.want(some...) {
		if one.took > min(held, storePatience)+10*time.Second {
			r.Errorf("it took %s", one.took)
		}
		if id := gjson.Get(one.body, "response_id").Str; id != "" {
			k.ids = append(k.ids, id)
		}
	}
	harness.Eventually(r, harness.Patience, "the lock is given back", func() bool { return time.Since(begun) > held })
	c = r.crowd()
	c.ask(s, harness.NativeChatPath, harness.NativeAsk("Hello").With("max_output_tokens", 4))
	for _, one := range c.want(answered) {
		k.ids = append(k.ids, gjson.Get(one.body, "response_id").Str)
	}
	k.wantStored(r, s)
}

func storeLocked(r *round) {
	r.lockedFor(time.Duration(500+r.IntN(4500))*time.Millisecond, answered)
}

func storeLockedForLong(r *round) {
	r.lockedFor(storePatience+time.Duration(8000+r.IntN(3000))*time.Millisecond, answered, "503 store_busy")
	if r.seen.of("503 store_busy") == 0 {
		r.Errorf("nobody was told that the store is busy")
	}
}

// storeGone: while the database's file is away, nothing is taken that would be lost, and the health says so.
func storeGone(r *round) {
	s, _ := r.loaded(r.parallel())
	k := &stored{}
	ask := func() *crowd {
		c := r.crowd()
		c.ask(s, harness.NativeChatPath, harness.NativeAsk("Hello").With("max_output_tokens", 4))
		return c
	}
	file := filepath.Join(s.Dir, "lmcaddy.db")
	if err := os.Rename(file, file+".away"); err != nil {
		r.Fatal(err)
	}
	ask().want("503 store_unavailable")
	c := r.crowd()
	c.chats(s, 1+r.upTo(3), 20)
	c.want(answered)
	if health := s.Get("/api/v1/health").Body; !strings.Contains(health, "store_unavailable") {
		r.Errorf("the health is %s", health)
	}
	if err := os.Rename(file+".away", file); err != nil {
		r.Fatal(err)
	}
	for _, one := range ask().want(answered) {
		k.ids = append(k.ids, gjson.Get(one.body, "response_id").Str)
	}
	k.wantStored(r, s)
}

// limit changes a soft limit of a running server, as an operator could, until the returned function is called.
func (r *round) limit(s *harness.Server, which int, to uint64) (restore func()) {
	var old unix.Rlimit
	if err := unix.Prlimit(s.PID, which, nil, &old); err != nil {
		r.Fatal(err)
	}
	if err := unix.Prlimit(s.PID, which, &unix.Rlimit{Cur: to, Max: old.Max}, nil); err != nil {
		r.Fatal(err)
	}
	restore = func() { _ = unix.Prlimit(s.PID, which, &old, nil) } // it may have ended
	r.Cleanup(restore)
	return restore
}

// storeFull lets no file grow, like a full disk. This doesn't affect answers that aren't stored.
func storeFull(r *round) {
	s, _ := r.loaded(r.parallel())
	k := &stored{}
	k.ids = append(k.ids, s.NativeChat(harness.NativeAsk("Hello").With("max_output_tokens", 4)).Get("response_id").Str)
	restore := r.limit(s, unix.RLIMIT_FSIZE, 0)
	c := r.crowd()
	for range 1 + r.upTo(4) {
		c.ask(s, harness.NativeChatPath, harness.NativeAsk("Hello").With("max_output_tokens", 4))
	}
	c.want("507 not_stored")
	c = r.crowd()
	c.chats(s, r.upTo(4), 20)
	c.ask(s, harness.NativeChatPath, harness.NativeAsk("Hello").With("max_output_tokens", 4).With("store", false))
	c.want(answered)
	for _, args := range [][]string{{"token", "create", "--name", "x"}, {"token", "ls"}} {
		got := s.Command(args...)
		if strings.Contains(got.Output, "made a mistake") || (got.Status != 0 && !strings.Contains(got.Output, "disk is full")) {
			r.Errorf("lmcaddy %v: status %d: %s", args, got.Status, got.Output)
		}
	}
	if got := s.Get("/api/v1/usage"); got.Status != http.StatusOK && got.Status != http.StatusInsufficientStorage {
		r.Errorf("usage: status %d: %s", got.Status, got.Body)
	}
	restore()
	c = r.crowd()
	c.ask(s, harness.NativeChatPath, harness.NativeAsk("Hello").With("max_output_tokens", 4))
	for _, one := range c.want(answered) {
		k.ids = append(k.ids, gjson.Get(one.body, "response_id").Str)
	}
	k.wantStored(r, s)
}

// noFiles leaves a server so few file descriptors that only some operations work.
func noFiles(r *round) {
	s := r.start(harness.Config{})
	isLoaded := r.IntN(2) == 0
	if isLoaded {
		r.wantAnswer(s)
	}
	keys := func() string { return s.Get("/api/v1/models").Get("models.#.key").Raw }
	want := keys() // on a connection that stays open
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID))
	if err != nil {
		r.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	if one := get(r, client, s.Base+"/api/v1/models"); one != http.StatusOK {
		r.Fatalf("the list has status %d", one)
	}
	restore := r.limit(s, unix.RLIMIT_NOFILE, uint64(len(files)+1+r.IntN(8))) //nolint:gosec // a length
	for range 3 {
		one := send(r.ctx, client, s.Base+harness.ChatPath, harness.Ask(capital))
		r.seen.add(one.outcome)
		if one.outcome != answered && one.outcome != "503 too_many_open_files" {
			r.Errorf("a client saw %q: %.300s", one.outcome, one.body)
		}
		if got := keys(); got != want {
			r.Errorf("the models %s have become %s", want, got)
		}
	}
	restore()
	r.wantAnswerSoon(s)
	if got := keys(); got != want {
		r.Errorf("the models %s have become %s", want, got)
	}
}

func get(r *round, client *http.Client, url string) (status int) {
	req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, url, nil)
	if err != nil {
		r.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is reused
	return resp.StatusCode
}

// noMemory: a load is refused with the figures until there is more memory.
func noMemory(r *round) {
	config := r.parallel(fmt.Sprintf("memory_budget %dMiB", r.upTo(30)))
	config.Port = harness.FreePort(r)
	s := r.start(config)
	c := r.crowd()
	c.chats(s, r.upTo(4), 20)
	for _, one := range c.want("503 model_too_large", "event model_too_large") {
		if one.body != "" && !strings.Contains(one.body, "memory_budget") {
			r.Errorf("the error doesn't name memory_budget: %s", one.body)
		}
	}
	config.LM = []string{"memory_budget 2GiB"}
	if got := s.Reload(config.String()); got.Status != 0 {
		r.Errorf("the reload failed: %s", got.Output)
	}
	c = r.crowd()
	c.chats(s, r.upTo(4), 20)
	c.want(answered)
}
