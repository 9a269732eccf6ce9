package fakeengine_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/closedport"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

// What slots are saved to and restored from can be compared with a real server:
//
//	LMCADDY_LLAMA_COMMAND=/path/of/llama-server LMCADDY_LLAMA_MODEL=file.gguf go test -v -run Contract ./internal/testing/fakeengine
//
// The model is the shipped one if none is named.

// startSaver starts a server with a folder for states, which may be given by an earlier one.
func startSaver(t *testing.T, states string, args ...string) *engine {
	t.Helper()
	program, model := &fakeengine.Engine{Path: os.Getenv("LMCADDY_LLAMA_COMMAND")}, os.Getenv("LMCADDY_LLAMA_MODEL")
	if program.Path == "" {
		program = fakeengine.Install(t, nil)
	}
	if model == "" {
		model = filepath.Join("..", "..", "testdata", "models", "lmcaddy", "tinychat", "tinychat-f16.gguf")
	}
	port := closedport.Port(t)
	args = append([]string{"-m", model, "--host", "127.0.0.1", "--port", fmt.Sprint(port), "-c", "1024", "-t", "1", "--no-ui", "--offline"}, args...)
	if states != "" {
		args = append(args, "--slot-save-path", states)
	}
	r := launch(t, program, []string{"GGML_NO_BACKTRACE=1", "PATH=" + os.Getenv("PATH")}, args...)
	r.started.Port = port
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if resp, err := r.do("/health", ""); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return r
			}
		}
		select {
		case <-r.exited:
			return r
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("it never became ready:\n%s", r.stderr.String())
		}
	}
}

const longSaying = "once upon a time there was a small town with a large square and a very old tree in the middle of it"

// talk has a conversation on a slot, and returns the tokens of its prompt, those that were cached, and all.
func (r *engine) talk(slot int, saying string) (prompt, cached, all int64) {
	r.t.Helper()
	status, body := r.ask(chatPath, fmt.Sprintf(`{"messages":[{"role":"user","content":%q}],"max_tokens":4,"temperature":0,"id_slot":%d}`, saying, slot))
	if status != http.StatusOK {
		r.t.Fatalf("%d %s", status, body)
	}
	u := gjson.Get(body, "usage")
	return u.Get("prompt_tokens").Int(), u.Get("prompt_tokens_details.cached_tokens").Int(), u.Get("total_tokens").Int()
}

// act does something to a slot, which has to succeed.
func (r *engine) act(slot int, action, file string) gjson.Result {
	r.t.Helper()
	status, body := r.ask(fmt.Sprintf("/slots/%d?action=%s", slot, action), fmt.Sprintf(`{"filename":%q}`, file))
	if status != http.StatusOK || gjson.Get(body, "id_slot").Int() != int64(slot) {
		r.t.Fatalf("%s of slot %d: %d %s", action, slot, status, body)
	}
	return gjson.Parse(body)
}

func TestContract_ASlotGoesThroughAFile(t *testing.T) {
	t.Parallel()
	states := t.TempDir()
	r := startSaver(t, states, "-np", "2")
	if got := r.act(0, "save", "empty"); got.Get("n_saved").Int() != 0 || got.Get("n_written").Int() != 40 || !got.Get("timings.save_ms").Exists() {
		t.Errorf("an empty slot: %s", got)
	}
	prompt, _, all := r.talk(1, longSaying)
	saved := r.act(1, "save", "one two")
	info, err := os.Stat(filepath.Join(states, "one two"))
	if err != nil {
		t.Fatal(err)
	}
	if saved.Get("n_saved").Int() != all-1 || saved.Get("n_written").Int() != info.Size() || saved.Get("filename").Str != "one two" {
		t.Errorf("saved %s, of %d tokens; the file has %d bytes", saved, all, info.Size())
	}
	if got := r.act(1, "erase", "x"); got.Get("n_erased").Int() != all-1 {
		t.Errorf("%s", got)
	}
	if _, cached, _ := r.talk(0, "no"); cached > 10 {
		t.Errorf("%d tokens of an empty slot", cached)
	}
	for _, args := range [][]string{{"-np", "2"}, {"-np", "2", "-c", "2048", "-b", "64", "-t", "2"}} {
		r := startSaver(t, states, args...)
		got := r.act(0, "restore", "one two")
		if got.Get("n_restored").Int() != all-1 || got.Get("n_read").Int() != info.Size() || !got.Get("timings.restore_ms").Exists() {
			t.Errorf("%s", got)
		}
		if _, cached, _ := r.talk(0, longSaying); cached < prompt-5 {
			t.Errorf("%d tokens are used of %d", cached, prompt)
		}
	}
}

func TestContract_WhatIsRefused(t *testing.T) {
	t.Parallel()
	r := startSaver(t, t.TempDir(), "-np", "1")
	for _, tt := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/slots/0?action=save", `{"filename":"../a"}`, 400, "Invalid filename"},
		{"/slots/0?action=save", `{"filename":"a/b"}`, 400, "Invalid filename"},
		{"/slots/0?action=save", `{"filename":""}`, 400, "Invalid filename"},
		{"/slots/0?action=save", `{"filename":"` + strings.Repeat("a", 300) + `"}`, 400, "Invalid filename"},
		{"/slots/0?action=save", `{}`, 400, "key 'filename' not found"},
		{"/slots/0?action=save", `x`, 400, "parse error"},
		{"/slots/0?action=save", `{"filename":5}`, 400, "type must be string, but is number"},
		{"/slots/0?action=foo", `{"filename":"a"}`, 400, "Invalid action"},
		{"/slots/0", `{"filename":"a"}`, 400, "Invalid action"},
		{"/slots/x?action=save", `{"filename":"a"}`, 400, "Invalid slot ID"},
		{"/slots/99?action=save", `{"filename":"a"}`, 200, ""}, // any number is some slot's
		{"/slots/0?action=restore", `{"filename":"none"}`, 400, "Unable to restore slot: No available space in KV cache or invalid slot save file"},
	} {
		status, body := r.ask(tt.path, tt.body)
		if status != tt.status || !strings.Contains(gjson.Get(body, "error.message").Str, tt.want) {
			t.Errorf("%s %.50s: %d %s", tt.path, tt.body, status, body)
		}
	}
	without := startSaver(t, "", "-np", "1")
	if status, body := without.ask("/slots/0?action=save", `{"filename":"a"}`); status != 501 || !strings.Contains(body, "--slot-save-path") {
		t.Errorf("%d %s", status, body)
	}
	nowhere := startSaver(t, filepath.Join(t.TempDir(), "none"))
	<-nowhere.exited
	if log := nowhere.stderr.String() + nowhere.stdout.String(); nowhere.cmd.ProcessState.Success() || !regexp.MustCompile("not a directory").MatchString(log) {
		t.Errorf("without its folder it ends with %s:\n%s", nowhere.cmd.ProcessState, log)
	}
}

// A state that doesn't fit leaves the slot empty.
func TestContract_StatesOfOthers(t *testing.T) {
	t.Parallel()
	states := t.TempDir()
	r := startSaver(t, states, "-np", "1")
	r.talk(0, longSaying)
	size := r.act(0, "save", "a").Get("n_written").Int()
	for name, args := range map[string][]string{
		"another number of slots": {"-np", "2"},
		"another type":            {"-np", "1", "-ctk", "q8_0"},
	} {
		t.Run(name, func(t *testing.T) {
			other := startSaver(t, states, args...)
			other.talk(0, longSaying)
			if status, body := other.ask("/slots/0?action=restore", `{"filename":"a"}`); status != 400 || !strings.Contains(body, "Unable to restore slot") {
				t.Errorf("%d %s", status, body)
			}
			if _, cached, _ := other.talk(0, longSaying); cached != 0 {
				t.Errorf("%d tokens are left", cached)
			}
		})
	}
	t.Run("another RoPE base", func(t *testing.T) { // it is taken, and used
		other := startSaver(t, states, "-np", "1", "--rope-freq-base", "5000")
		if got := other.act(0, "restore", "a"); got.Get("n_read").Int() != size {
			t.Errorf("%s", got)
		}
		if _, cached, _ := other.talk(0, longSaying); cached == 0 {
			t.Error("it isn't used")
		}
	})
}

func TestContract_DamagedFiles(t *testing.T) {
	t.Parallel()
	states := t.TempDir()
	r := startSaver(t, states, "-np", "1")
	r.talk(0, longSaying)
	r.act(0, "save", "a")
	whole, err := os.ReadFile(filepath.Join(states, "a"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte{}, whole...)
	for i := len(flipped) - 200; i < len(flipped)-150; i++ {
		flipped[i] ^= 1
	}
	appendix := 0 // the shipped model has no checkpoint: there is only its head
	if strings.HasSuffix(string(whole), "SCKP") {
		appendix = 4
	}
	for name, tt := range map[string]struct {
		content []byte
		want    int // its status; 0: the server aborts
		used    bool
	}{
		"half of it":     {whole[:len(whole)/2], 400, false},
		"a hundredth":    {whole[:len(whole)/100], 400, false},
		"nothing":        {nil, 400, false},
		"no magic":       {append([]byte("x"), whole[1:]...), 400, false},
		"a byte flipped": {flipped, 200, true},
		"longer":         {append(append([]byte{}, whole...), "rubbish"...), 200, true},
		"cut a little":   {whole[:len(whole)-appendix-60], 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := startSaver(t, states, "-np", "1")
			file := regexp.MustCompile(`\W`).ReplaceAllString(name, "_")
			if err := os.WriteFile(filepath.Join(states, file), tt.content, 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.want == 0 {
				if _, err := r.do("/slots/0?action=restore", `{"filename":"`+file+`"}`); err == nil {
					t.Fatal("it has answered")
				}
				<-r.exited
				if got := r.cmd.ProcessState.String(); runtime.GOOS != "windows" && !strings.Contains(got, "aborted") {
					t.Errorf("it ended with %s", got)
				}
				r.stderr.until(t, "GGML_ASSERT")
				return
			}
			status, body := r.ask("/slots/0?action=restore", `{"filename":"`+file+`"}`)
			if status != tt.want {
				t.Fatalf("%d %s", status, body)
			}
			if tt.want == 200 && gjson.Get(body, "n_read").Int() != int64(len(whole)) {
				t.Errorf("%s, of %d bytes", body, len(whole))
			}
			if _, cached, _ := r.talk(0, longSaying); (cached > 0) != tt.used {
				t.Errorf("%d tokens are used", cached)
			}
		})
	}
}
