package warm

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// FuzzDecode reads descriptions that may be anything. Without the key, none is accepted.
func FuzzDecode(f *testing.F) {
	key := &secret{1}
	r := sample()
	content, err := r.encode(key, "print/id")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte(`{"version":1,"mac":"","state":null}`))
	f.Add([]byte(`{"version":1,"state":{}}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, changed []byte) {
		got, err := decode(changed, key, "print/id")
		if err != nil {
			return
		}
		if diff := cmp.Diff(r, got); diff != "" { // the envelope may be written otherwise
			t.Errorf("another state is accepted (-want +got):\n%s", diff)
		}
		if _, err := decode(changed, key, "print/other"); err == nil {
			t.Error("it is accepted in another place")
		}
		if _, err := decode(changed, &secret{2}, "print/id"); err == nil {
			t.Error("it is accepted in another home")
		}
	})
}

func sample() *record {
	return &record{Listed{Model: "a/b", State: prefix.State{
		Owner: "ann", Conversation: "resp_1", Prompt: chain("a", "b"), PromptTokens: 5, Tokens: 7, Bytes: 3,
	}}, 9}
}

// FuzzRecord reads descriptions with the right authentication, as if an older version had written them. What is accepted makes sense, and is
// the same when it is written again.
func FuzzRecord(f *testing.F) {
	state, err := json.Marshal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(state)
	f.Add(bytes.Replace(state, []byte(`"bytes":3`), []byte(`"bytes":-3`), 1))
	f.Add(bytes.Replace(state, []byte(`"tokens":7`), []byte(`"tokens":4`), 1))
	f.Add([]byte(`{"model":"x","prompt":"AAAA","prompt_tokens":1,"tokens":1,"bytes":1}`))
	f.Add([]byte(`{"used":"9999-12-31T23:59:59Z"}`))
	f.Fuzz(func(t *testing.T, state []byte) {
		content, err := json.Marshal(signed{recordVersion, new(secret).mac("p", compact(state)), compact(state)})
		if err != nil {
			return
		}
		r, err := decode(content, new(secret), "p")
		if err != nil {
			return
		}
		if r.Tokens <= 0 || r.PromptTokens <= 0 || r.PromptTokens > r.Tokens || r.Bytes <= 0 || len(r.Prompt) == 0 {
			t.Errorf("accepted: %+v", r)
		}
		for _, prompt := range []prefix.Chain{nil, r.Prompt, r.Prompt[:1], append(slices.Clip(r.Prompt), prefix.Link{})} {
			if n := r.Common(prompt); n < 0 || n > r.PromptTokens {
				t.Errorf("%d of %d tokens in common", n, r.PromptTokens)
			}
		}
		again, err := r.encode(new(secret), "p")
		if err != nil {
			return // a time that JSON can't express
		}
		if got, err := decode(again, new(secret), "p"); err != nil || !cmp.Equal(r, got) {
			t.Errorf("not the same again: %v", err)
		}
	})
}

func compact(state []byte) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, state) != nil {
		return state
	}
	return b.Bytes()
}

// FuzzOpen opens a store in which files have any names and content. It never fails, keeps only what it has written itself, and
// touches nothing outside.
func FuzzOpen(f *testing.F) {
	f.Add("x.kv", []byte("x"), false, []byte("{}"))
	f.Add("x.json", []byte(`{"version":1,"state":{}}`), true, []byte(`{"day":"2026-11-22","bytes":-1}`))
	f.Add(strings.Repeat("0", 32)+".json", []byte(`{"version":1,"state":{}}`), false, []byte("null"))
	f.Add(strings.Repeat("0", 32)+".kv", []byte{}, true, []byte("["))
	f.Add("lost+found", []byte("x"), false, []byte{})
	f.Fuzz(func(t *testing.T, name string, content []byte, atTop bool, ledger []byte) {
		w := newWorld(t)
		w.put(w.shelf(), state(chain("a")))
		outside := filepath.Join(filepath.Dir(w.dir), "outside")
		w.must(os.WriteFile(outside, []byte("x"), 0o600), os.WriteFile(filepath.Join(w.dir, ledgerFile), ledger, 0o600))
		folder, record := filepath.Dir(w.path(stateSuffix)), w.path(recordSuffix)
		if atTop {
			folder = w.dir
		}
		if filepath.Base(name) == name && filepath.IsLocal(name) && name != keyFile {
			_ = os.Link(record, filepath.Join(folder, strings.Repeat("1", 32)+recordSuffix)) // a description in another place
			_ = os.WriteFile(filepath.Join(folder, name), content, 0o600)                    // the system may not like the name
			_ = os.Symlink(outside, filepath.Join(folder, name+stateSuffix))                 // and neither this one
			_ = os.Mkdir(filepath.Join(folder, name+"-"+recordSuffix), 0o700)                // nor this one
			_ = os.WriteFile(filepath.Join(folder, name+recordSuffix), nil, 0)               // which can't be read
		}
		s, err := Open(w.dir, slog.New(slog.DiscardHandler))
		w.must(err)
		defer s.Close()
		if s.Err() != nil || len(s.List()) != 1 {
			t.Errorf("%v, %d states", s.Err(), len(s.List()))
		}
		if got, err := os.ReadFile(outside); err != nil || string(got) != "x" {
			t.Errorf("a file outside was touched: %v", err)
		}
		s.Configure(Settings{Off: true})
		if len(s.List()) != 0 {
			t.Error("a state is left")
		}
	})
}

// FuzzLay changes the file of a state in any place. It is laid only if it is the same.
func FuzzLay(f *testing.F) {
	f.Add(0, []byte{1}, 0)
	f.Add(500, []byte{0, 0, 0}, 0)
	f.Add(0, []byte{}, 3)
	f.Fuzz(func(t *testing.T, at int, change []byte, cut int) {
		w := newWorld(t)
		h := w.shelf()
		content := w.put(h, state(chain("a")))
		changed := bytes.Clone(content)
		if at >= 0 && at < len(changed) {
			copy(changed[at:], change)
		}
		if cut > 0 && cut < len(changed) {
			changed = changed[:len(changed)-cut]
		}
		w.must(os.WriteFile(w.path(stateSuffix), changed, 0o600))
		if err := w.lay(h, chain("a")); (err == nil) != bytes.Equal(content, changed) {
			t.Errorf("Lay: %v", err)
		}
	})
}
