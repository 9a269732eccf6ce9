package fakeengine

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// The paths by which a [Rule] names the actions on any slot. Besides Gate, FirstDelay, Status and Body, PromptTokens counts, which are
// told instead of the real number, and Cues: those After 0 happen first, those After 1 when half of a file is written.
const (
	SaveAction    = "/slots?action=save"
	RestoreAction = "/slots?action=restore"
	EraseAction   = "/slots?action=erase"
)

// act answers POST /slots/N?action=A. The loop does nothing else meanwhile.
func (v *server) act(w http.ResponseWriter, r *http.Request, number, body string) {
	select {
	case <-v.stopping: // the loop has ended
		v.Tell(Event{Kind: Frozen})
		<-r.Context().Done()
		return
	default:
	}
	v.actions.Add(1)
	defer v.actions.Done()
	action := r.URL.Query().Get("action")
	rule := v.uses.Other(v.script().Rules, "/slots?action="+action, body)
	a := &slotAction{server: v, rule: rule, name: action}
	answer, err := a.run(r.Context(), number, body)
	var refused *apiError
	code := http.StatusOK
	switch {
	case errors.As(err, &refused):
		code = refused.Code
		refused.write(w)
	case err != nil:
		return // the client has gone
	case rule.Status != 0:
		code = rule.Status
		refuse(w, rule.Status, rule.Body)
	default:
		writeBody(w, http.StatusOK, encode(answer))
	}
	v.Tell(Event{Kind: Acted, Slot: a.slot, Reason: action, Code: code})
}

// slotAction is an action on a slot.
type slotAction struct {
	*server
	rule   Rule
	name   string
	number int // of the slot, as the request has it
	slot   int
}

// run waits until the slot is free. What it does then goes on when its client disconnects.
func (a *slotAction) run(ctx context.Context, number, body string) (answer object, err error) {
	file, err := a.check(number, body)
	if err != nil {
		return nil, err
	}
	held, err := a.slots.take(ctx, a.slots.join(1, a.slot))
	if err != nil {
		return nil, errGone
	}
	defer a.slots.release(held)
	a.loop.Lock()
	defer a.loop.Unlock()
	a.pause(a.rule.Gate, a.rule.FirstDelay)
	a.cues(0)
	if a.rule.Status != 0 {
		return nil, nil
	}
	begun := time.Now()
	switch a.name {
	case "save":
		return a.save(file, begun)
	case "restore":
		return a.restore(file, begun)
	default:
		n := len(a.slots.content(a.slot).tokens)
		a.slots.hold(a.slot, content{})
		return object{"id_slot": a.number, "n_erased": n}, nil
	}
}

// pause waits for a gate, then for a time.
func (a *slotAction) pause(gate string, d time.Duration) {
	if gate != "" {
		a.Tell(Event{Kind: Gated, Gate: gate})
		for !a.IsOpen(gate) {
			time.Sleep(fakekit.PollEvery)
		}
	}
	time.Sleep(d)
}

// cues does what the rule has for a moment. The loop never goes on after a hang.
func (a *slotAction) cues(after int) {
	for i := range a.rule.Cues {
		c := &a.rule.Cues[i]
		if c.After != after {
			continue
		}
		a.pause(c.Gate, c.Delay)
		switch c.Do {
		case Crash:
			d := Death{Signal: fakekit.Abort}
			if c.Death != nil {
				d = *c.Death
			}
			a.die(d, "crash")
		case Cut:
			panic(http.ErrAbortHandler) // net/http's way to close a connection
		case Hang, Stick:
			a.stickOnce.Do(func() { close(a.stuck) })
			a.Tell(Event{Kind: Stuck})
			select {}
		}
	}
}

// check checks a request as far as that is possible without the slot.
func (a *slotAction) check(number, body string) (file string, err error) {
	a.number, err = strconv.Atoi(number)
	switch {
	case err != nil:
		return "", invalid("Invalid slot ID")
	case a.args.states == "":
		return "", &apiError{Code: http.StatusNotImplemented, Message: "This server does not support slots action. Start it with `--slot-save-path`", Type: errorType(http.StatusNotImplemented)}
	case a.name != "save" && a.name != "restore" && a.name != "erase":
		return "", invalid("Invalid action")
	}
	a.slot = (a.number%a.slots.all + a.slots.all) % a.slots.all // any number is taken for some slot
	if a.name == "erase" {
		return "", nil
	}
	name := gjson.Get(body, "filename")
	switch {
	case !gjson.Valid(body):
		return "", invalid("[json.exception.parse_error.101] parse error at line 1, column 1: syntax error while parsing value")
	case !name.Exists():
		return "", invalid("[json.exception.out_of_range.403] key 'filename' not found")
	case name.Type != gjson.String:
		return "", invalid("[json.exception.type_error.302] type must be string, but is " + strings.ToLower(name.Type.String()))
	case name.Str == "" || name.Str == "." || name.Str == ".." || len(name.Str) > 255 || strings.ContainsAny(name.Str, `/\:`):
		return "", invalid("Invalid filename")
	}
	return filepath.Join(a.args.states, name.Str), nil
}

// told is the number of tokens that an answer tells.
func (a *slotAction) told(tokens int) int {
	if n := a.rule.PromptTokens; n != 0 {
		return n
	}
	return tokens
}

// save writes a file in place. On failure it leaves what it has written.
func (a *slotAction) save(path string, begun time.Time) (object, error) {
	held := a.slots.content(a.slot)
	file := encodeState(a.shape(), held.state, held.tokens)
	if err := a.write(path, file); err != nil {
		logf('E', "srv  %v", err)
		return nil, &apiError{Code: http.StatusInternalServerError, Message: "Unable to save slot", Type: "server_error"}
	}
	return object{
		"id_slot": a.number, "filename": filepath.Base(path), "n_saved": a.told(len(held.tokens)), "n_written": len(file),
		"timings": object{"save_ms": milliseconds(begun)},
	}, nil
}

func (a *slotAction) write(path string, content []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(content[:len(content)/2]); err != nil {
		return err
	}
	a.cues(1)
	_, err = f.Write(content[len(content)/2:])
	return err
}

// restore reads a file. One that is refused leaves the slot empty; one that is too short makes the process abort.
func (a *slotAction) restore(path string, begun time.Time) (object, error) {
	a.slots.hold(a.slot, content{})
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, invalid(errBadState.Error())
	}
	tokens, state, read, err := decodeState(file, a.shape(), a.context)
	switch {
	case errors.Is(err, errAborted):
		a.die(Death{Signal: 6, Lines: []string{"/src/llama-context.cpp:3581: " + err.Error()}}, "a file that is too short")
	case err != nil:
		logf('E', "srv  state_read_file: failed to read %s", path)
		return nil, invalid(errBadState.Error())
	}
	a.slots.hold(a.slot, content{tokens, state, !bytes.Equal(state, stateOf(a.weights(), tokens))})
	return object{
		"id_slot": a.number, "filename": filepath.Base(path), "n_restored": a.told(len(tokens)), "n_read": read,
		"timings": object{"restore_ms": milliseconds(begun)},
	}, nil
}

func milliseconds(since time.Time) float64 { return float64(time.Since(since).Microseconds()) / 1000 }
