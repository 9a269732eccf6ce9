package warm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// TestStore_ManyAtATime uses a store from many goroutines. No state is ever laid that isn't as it was written, and in the end
// there are no files but those of the states that are kept.
func TestStore_ManyAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Configure(Settings{Size: 60_000, MaxAge: time.Hour})
	owners := []string{"ann", "bob", "cid"}
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			p := w.print()
			p.Model = fmt.Sprint("ann/model-", i%2)
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for range 5 {
				h, err := w.Shelf(p)
				if err != nil {
					t.Error(err)
					return
				}
				var several sync.WaitGroup
				for range 3 {
					seed := random.Uint64()
					several.Go(func() { w.useShelf(h, rand.New(rand.NewPCG(seed, 1)), owners) })
				}
				several.Wait()
				h.Close()
			}
		})
	}
	all.Go(func() {
		random := rand.New(rand.NewPCG(9, 9))
		for range 100 {
			w.wait(time.Minute)
			switch random.IntN(8) {
			case 0:
				w.DeleteConversation(fmt.Sprint("resp_", random.IntN(3)))
			case 1:
				w.Clear(fmt.Sprint("ann/model-", random.IntN(2)))
			case 2:
				w.DeleteModel("ann/model-0")
			case 3:
				w.Configure(Settings{Size: 20_000 + random.Int64N(60_000)})
			case 4:
				w.tidy()
			case 5:
				w.List()
			case 6:
				w.Counts()
			case 7:
				w.DeleteOwner("cid")
			}
		}
	})
	all.Wait()
	w.hasOnly(len(w.List()))
	before := len(w.List())
	w.Close()
	w.open()
	w.hasOnly(before)
}

// useShelf puts and lays states at random.
func (w *world) useShelf(h *Shelf, random *rand.Rand, owners []string) {
	for i := range 12 {
		message := string(rune('a' + random.IntN(8)))
		if random.IntN(2) == 0 {
			name := fmt.Sprintf("%x-%d", random.Uint64(), i)
			size := 1 + random.Int64N(8000)
			content := bytes.Repeat([]byte{byte(size)}, int(size))
			st := prefix.State{
				Owner: owners[random.IntN(len(owners))], Conversation: fmt.Sprint("resp_", random.IntN(5)), Prompt: chain(message, "x"),
				PromptTokens: 20, Tokens: 30, Bytes: size,
			}
			if err := os.WriteFile(filepath.Join(h.Folder(), name), content, 0o600); err != nil {
				w.t.Error(err)
			}
			if h.Admits(size) {
				_ = h.Put(name, st) // it may have been deleted meanwhile
			}
			_ = os.Remove(filepath.Join(h.Folder(), name))
			continue
		}
		found, ok := h.Find(Query{Prompt: chain(message)})
		if !ok {
			continue
		}
		file, err := h.Lay(w.t.Context(), found.ID)
		if err != nil {
			continue // so may this one
		}
		content, err := os.ReadFile(filepath.Join(h.Folder(), file))
		if err != nil || int64(len(content)) != found.Bytes || bytes.Count(content, content[:1]) != len(content) || content[0] != byte(len(content)) {
			w.t.Errorf("a state of %d bytes was laid with %d, %v", found.Bytes, len(content), err)
		}
		h.Judge(found.ID, 20, 20)
		h.Lift(file)
	}
}

// TestDelete_HoldsForManyAtATime: after a deletion has returned, no state of the conversation is found or kept, whatever was being
// put at that moment.
func TestDelete_HoldsForManyAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	for round := range 20 {
		conversation := fmt.Sprint("resp_", round)
		var all sync.WaitGroup
		for i := range 4 {
			name := fmt.Sprint(i)
			w.engineWrites(h, name, 1000)
			st := state(chain(conversation, name))
			st.Conversation = conversation
			all.Go(func() { _ = h.Put(name, st) })
		}
		all.Go(func() {
			w.DeleteConversation(conversation)
			if got := w.finds(h, chain(conversation)); got != 0 {
				t.Errorf("%s is found after its deletion", conversation)
			}
		})
		all.Wait()
		if got := w.finds(h, chain(conversation)); got != 0 {
			t.Errorf("%s has reappeared", conversation)
		}
	}
	w.hasOnly(0)
}
