package store

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// putForEver stores conversations from 50 goroutines, and prints the ID of each stored turn. where is a path or a URL.
func putForEver(where string) int {
	at := Options{Path: where}
	if strings.Contains(where, "://") {
		at = Options{URL: where}
	}
	s, err := Open(context.Background(), at)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Each process uses another range of IDs.
	lastID.Store(rand.Int64N(1 << 62))
	var out sync.Mutex
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			var last *Turn
			for n := 0; ; n++ {
				next := turn(last, fmt.Sprint("turn ", n)).withImage(fmt.Sprint("image ", n%10))
				if err := s.Put(context.Background(), next); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				out.Lock()
				fmt.Println(next.ID)
				out.Unlock()
				if last = next; n%20 == 19 {
					last = nil
				}
			}
		})
	}
	all.Wait()
	return 0
}

var kills = flag.Int("kills", 5, "how often a process that stores is killed")

// TestKill kills a process that stores turns at random moments. All turns that it printed must be stored.
func TestKill(t *testing.T) {
	eachPlace(t, func(t *testing.T, at Options) {
		for n := range *kills {
			ids := killed(t, at)
			s, err := Open(t.Context(), at)
			must(t, err)
			for _, id := range ids {
				if _, err := s.Chain(t.Context(), "", id); err != nil {
					t.Errorf("a stored turn after the kill: %v", err)
				}
			}
			sound(t, s)
			t.Logf("kill %d: %d turns were said to be stored, %d are", n, len(ids), rows(t, s, "turns"))
			must(t, s.Close())
		}
	})
}

// killed runs putForEver, and kills it soon after the first turns. It returns the printed IDs.
func killed(t *testing.T, at Options) (ids []string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "STORE_TEST_PUT="+at.Path+at.URL)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if ids = append(ids, lines.Text()); len(ids) == 50 {
			time.AfterFunc(time.Duration(rand.Int64N(int64(300*time.Millisecond))), func() { _ = child.Process.Kill() })
		}
	}
	_ = child.Wait()
	if at.URL != "" {
		server.alone(t, at.URL) // it may still commit what nobody waits for
	}
	if len(ids) < 50 {
		t.Fatalf("the process ended by itself, after %d turns", len(ids))
	}
	if last := ids[len(ids)-1]; len(last) != len("resp_")+48 {
		ids = ids[:len(ids)-1] // cut off by the kill
	}
	return ids
}
