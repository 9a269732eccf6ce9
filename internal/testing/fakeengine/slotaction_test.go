package fakeengine_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

// begin starts an action on a slot. Its answer comes through the channel.
func (r *engine) begin(path, body string) <-chan string {
	answered := make(chan string, 1)
	go func() {
		resp, err := r.do(path, body)
		if err != nil {
			answered <- err.Error()
			return
		}
		_ = resp.Body.Close()
		answered <- resp.Status
	}()
	return answered
}

const saveBody = `{"filename":"a"}`

// A save waits for its slot. So does a request that is pinned to it, while others pass.
func TestSlots_WhoIsPinnedWaits(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Nth: 1, Gate: "first"}}}, nil, "-np", "2", "--slot-save-path", t.TempDir())
	first := r.begin(chatPath, chatBody(`"id_slot":1`))
	r.Wait(t, fakeengine.At("first"))
	saved := r.begin("/slots/1?action=save", saveBody)
	second := r.begin(chatPath, chatBody(`"id_slot":1`))
	r.awaitN(fakeengine.Queued, 2)
	if status, _ := r.ask(chatPath, chatBody("")); status != http.StatusOK {
		t.Error(status)
	}
	select {
	case status := <-saved:
		t.Errorf("a slot in use was saved: %s", status)
	case status := <-second:
		t.Errorf("a slot in use was used: %s", status)
	default:
	}
	r.Release("first")
	for _, answered := range []<-chan string{first, saved, second} {
		if status := <-answered; status != "200 OK" {
			t.Error(status)
		}
	}
}

// While a slot is saved, no other stream goes on.
func TestSlots_ASaveStopsTheLoop(t *testing.T) {
	t.Parallel()
	rules := []fakeengine.Rule{
		{Path: fakeengine.SaveAction, Gate: "saving"},
		{Path: chatPath, Cues: []fakeengine.Cue{{After: 2, Gate: "two"}}},
	}
	r := ready(t, &fakeengine.Script{Rules: rules}, nil, "-np", "2", "--slot-save-path", t.TempDir())
	s := r.stream(`,"id_slot":0`)
	s.contents(2)
	r.Wait(t, fakeengine.At("two"))
	saved := r.begin("/slots/1?action=save", saveBody)
	r.Wait(t, fakeengine.At("saving"))
	r.Release("two")
	more := make(chan struct{})
	go func() {
		defer close(more)
		if _, err := s.next(); err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-more:
		t.Error("a stream went on")
	case <-saved:
		t.Error("the save is over")
	default:
	}
	r.Release("saving")
	<-more
	if status := <-saved; status != "200 OK" {
		t.Error(status)
	}
}

// Faults are scripted by the names of the actions, on any slot.
func TestSlots_Faults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule fakeengine.Rule
		want string // in the answer or error of a save
		file int64  // bytes; -1: there is none
	}{
		"refused":      {fakeengine.Rule{Status: 500}, "500", -1},
		"wrong counts": {fakeengine.Rule{PromptTokens: 77}, "200", 40},
		"no answer":    {fakeengine.Rule{Status: 200, Body: "{}"}, "200", -1},
		"death first":  {fakeengine.Rule{Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}}, "EOF", -1},
		"death amid":   {fakeengine.Rule{Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Crash}}}, "EOF", 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states := t.TempDir()
			tt.rule.Path = fakeengine.SaveAction
			r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{tt.rule}}, nil, "-np", "2", "--slot-save-path", states)
			if got := <-r.begin("/slots/1?action=save", saveBody); !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
			size := int64(-1)
			if info, err := os.Stat(filepath.Join(states, "a")); err == nil {
				size = info.Size()
			}
			if size != tt.file {
				t.Errorf("the file has %d bytes, want %d", size, tt.file)
			}
		})
	}
}

// A save under way is finished before the process exits; one that is asked for later never is.
func TestSlots_ASaveAndTheExitLine(t *testing.T) {
	t.Parallel()
	states := t.TempDir()
	r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Path: fakeengine.SaveAction, Times: 1, Gate: "saving"}}}, childMode, "-np", "1", "--slot-save-path", states)
	saved := r.begin("/slots/0?action=save", saveBody)
	r.Wait(t, fakeengine.At("saving"))
	if _, err := r.stdin.Write([]byte("cmd_router_to_child:exit\n")); err != nil {
		t.Fatal(err)
	}
	r.await(fakeengine.Asked)
	r.Release("saving")
	if status := <-saved; status != "200 OK" {
		t.Error(status)
	}
	r.wantExit("exit status 0")
	if info, err := os.Stat(filepath.Join(states, "a")); err != nil || info.Size() != 40 {
		t.Errorf("%v %v", info, err)
	}
}

// What was computed with other weights, or damaged, is nonsense, and so is what is computed with it.
func TestSlots_AWrongStateMakesNonsense(t *testing.T) {
	t.Parallel()
	states := t.TempDir()
	first := ready(t, nil, nil, "-np", "1", "--slot-save-path", states)
	if _, body := first.ask(chatPath, chatBody("")); strings.Contains(body, "wrong") {
		t.Error(body)
	}
	first.act(0, "save", "a")
	for base, want := range map[string]bool{"10000": true, "": false} {
		args := []string{"-np", "1", "--slot-save-path", states}
		if base != "" {
			args = append(args, "--rope-freq-base", base)
		}
		r := ready(t, nil, nil, args...)
		r.act(0, "restore", "a")
		if _, body := r.ask(chatPath, chatBody("")); strings.Contains(body, "wrong wrong wrong") != want {
			t.Errorf("RoPE base %q: %s", base, body)
		}
	}
}
