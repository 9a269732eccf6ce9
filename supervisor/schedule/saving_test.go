package schedule

import (
	"testing"
	"time"
)

// saver are limits with which slots of 300 tokens are saved after a minute.
var saver = Limits{SaveTokens: 300, SaveAfter: time.Minute}

// choosy is a Spec whose requests choose their slots.
func choosy(key string, slots int) *Spec { return with(specOf(key, slots), choosing) }

// says asks for a slot with a prompt.
func says(id uint64, spec *Spec, messages ...string) Asked {
	asked := asks(id, spec)
	asked.Waiter.Prompt = chainOf(messages...)
	return asked
}

// heard returns a slot on which a prompt was answered.
func heard(gen, waiter uint64, slot, prompt, cached, completion int) Returned {
	return Returned{Gen: gen, Slots: 1, Waiter: waiter, Used: []Use{{Slot: slot, Begun: true, Prompt: prompt, Cached: cached, Completion: completion}}}
}

// talked plays an instance that has answered a prompt of 400 tokens with 50 on each of some slots, and is idle.
func talked(t *testing.T, limits Limits, spec *Spec, conversations ...string) *play {
	t.Helper()
	p := newPlay(t, limits)
	gen := p.idle(spec)
	p.at(Savable{gen})
	for i, c := range conversations {
		p.at(says(uint64(i+1), spec, c, c, c, c), Grant{uint64(i + 1), gen, 1, false})
	}
	for i := range conversations {
		p.at(heard(gen, uint64(i+1), i, 400, 0, 50))
	}
	return p
}

func TestSaving_WhenIdle(t *testing.T) {
	t.Parallel()
	spec := choosy("a", 3)
	p := talked(t, saver, spec, "x", "y", "z")
	p.due(time.Minute, Save{1, 2, false}) // the most recent first, one at a time
	p.never()
	p.on(Saved{Gen: 1, Slot: 2, Tokens: 450}, Save{1, 1, false})
	p.on(Saved{Gen: 1, Slot: 1}, Save{1, 0, false}) // it couldn't be saved
	p.on(Saved{Gen: 1, Slot: 0, Tokens: 450})
	p.never() // and isn't tried again

	p.on(says(4, spec, "x", "x", "x", "x", "1", "2"), Grant{4, 1, 1, false})
	p.on(heard(1, 4, 0, 650, 445, 50)) // 255 tokens more than are saved
	p.never()
	p.on(says(5, spec, "x", "x", "x", "x", "1", "2", "3"), Grant{5, 1, 1, false})
	p.on(heard(1, 5, 0, 690, 690, 11))
	p.due(time.Minute, Save{1, 0, false})
}

// What a request uses in the meantime isn't saved, and what it has used is saved a minute later.
func TestSaving_NotWhileRequestsRun(t *testing.T) {
	t.Parallel()
	spec := choosy("a", 2)
	p := talked(t, saver, spec, "x", "y")
	p.pass(time.Minute - 2*time.Second)
	p.on(says(3, spec, "x", "x", "x", "x"), Grant{3, 1, 1, false})
	p.never()
	p.pass(time.Hour)
	p.on(Returned{Gen: 1, Slots: 1, Waiter: 3})
	p.due(time.Minute, Save{1, 1, false})
}

func TestSaving_OnlyWhatIsWorthIt(t *testing.T) {
	t.Parallel()
	prompt := chainOf("x", "x", "x", "x")
	whole := Use{Slot: 0, Begun: true, Prompt: 400, Completion: 50}
	for name, tt := range map[string]struct {
		limits Limits
		ask    func(*Waiter)
		use    func(*Use)
		want   bool
	}{
		"it is":                           {saver, nil, nil, true},
		"as many tokens as it takes":      {Limits{SaveTokens: 450, SaveAfter: time.Minute}, nil, nil, true},
		"too few tokens":                  {Limits{SaveTokens: 451, SaveAfter: time.Minute}, nil, nil, false},
		"nothing is ever saved":           {Limits{SaveTokens: 300}, nil, nil, false},
		"the client doesn't want it":      {saver, func(w *Waiter) { w.Unsaved = true }, nil, false},
		"the prompt wasn't completed":     {saver, nil, func(u *Use) { u.Completion = 0 }, false},
		"the tokens are unknown":          {saver, nil, func(u *Use) { u.Prompt = 0 }, false},
		"nobody could recognize it again": {saver, func(w *Waiter) { w.Prompt = nil }, nil, false},
		"the engine didn't begin":         {saver, nil, func(u *Use) { u.Begun = false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, tt.limits)
			spec := choosy("a", 1)
			p.idle(spec)
			p.at(Savable{1})
			asked, use := asks(1, spec), whole
			asked.Waiter.Prompt = prompt
			if tt.ask != nil {
				tt.ask(&asked.Waiter)
			}
			if tt.use != nil {
				tt.use(&use)
			}
			p.at(asked, Grant{1, 1, 1, false})
			p.at(Returned{Gen: 1, Slots: 1, Waiter: 1, Used: []Use{use}})
			if tt.want {
				p.due(time.Minute, Save{1, 0, false})
			} else {
				p.never()
			}
		})
	}
}

func TestSaving_OnlyIfTheEngineCan(t *testing.T) {
	t.Parallel()
	p := newPlay(t, saver)
	spec := choosy("a", 1)
	p.idle(spec)
	p.at(says(1, spec, "x", "x", "x", "x"), Grant{1, 1, 1, false})
	p.at(heard(1, 1, 0, 400, 0, 50))
	p.never()
	p.at(unloader(2, "a"), Stop{1, ForRequest})
	p.at(Savable{1}) // too late
}

// Whether it can is said by each process.
func TestSaving_OnlyIfThisProcessCan(t *testing.T) {
	t.Parallel()
	p := newPlay(t, saver)
	spec := choosy("a", 1)
	p.on(says(1, spec, "x", "x", "x", "x"), Spawn{"a", 1})
	p.on(Savable{1})
	p.on(Signalled{1, Signal{Kind: SignalPortTaken}})
	p.on(died(1), Spawn{"a", 2})
	p.on(ready(2), Loaded{2}, Grant{1, 2, 1, true})
	p.on(heard(2, 1, 0, 400, 0, 50))
	p.never()
	p.on(Savable{2})
	p.due(time.Minute-time.Second, Save{2, 0, false})
}

// Of several answers to one prompt, one is saved, also before the instance leaves.
func TestSaving_OneOfSeveralAnswers(t *testing.T) {
	t.Parallel()
	spec := choosy("a", 3)
	p := talked(t, saver, spec, "x", "x", "y")
	p.on(unloader(9, "a"), Save{1, 2, true}, Save{1, 1, true})
	p.on(Saved{Gen: 1, Slot: 1, Tokens: 450})
	p.on(Saved{Gen: 1, Slot: 2, Tokens: 450}, Stop{1, ForRequest})
	p.on(stopped(1), Grant{Waiter: 9})
}

func TestSaving_BeforeItLeaves(t *testing.T) {
	t.Parallel()
	other := choosy("b", 1)
	for name, tt := range map[string]struct {
		limits Limits
		change func(*Spec)
		ev     Event
		why    Reason
	}{
		"unloaded":         {saver, nil, unloader(9, "a"), ForRequest},
		"evicted":          {Limits{Instances: 1, SaveTokens: 300, SaveAfter: time.Minute}, nil, asks(9, other), ForRoom},
		"idle for its TTL": {saver, func(s *Spec) { s.TTL = time.Second }, Tick{}, ForIdleness},
		"new settings":     {saver, nil, Configured{saver, map[uint64]*Spec{1: choosy("a", 3)}}, ForSettings},
		"asked to end":     {saver, nil, EndAsked{1}, ForSignal},
		"shut down":        {saver, nil, Closed{}, ForClosing},
		"lowered limits":   {saver, nil, Configured{Limits{Memory: 10, SaveTokens: 300, SaveAfter: time.Minute}, map[uint64]*Spec{}}, ForRoom},
	} {
		for end, saves := range map[string]bool{", saved": true, ", too slow": false} {
			t.Run(name+end, func(t *testing.T) {
				t.Parallel()
				spec := choosy("a", 2)
				if tt.change != nil {
					tt.change(spec)
				}
				p := talked(t, tt.limits, spec, "x", "y")
				if name == "lowered limits" { // the most recently used instance stays
					p.st.Instances[0].Claim = 20
					p.idle(sized("c", 5))
				}
				p.on(tt.ev, Save{1, 1, true}, Save{1, 0, true})
				if got := p.st.Instances[0].Status; got != Draining {
					t.Errorf("it is %v", got)
				}
				p.on(Saved{Gen: 1, Slot: 1, Tokens: 450})
				if saves {
					p.on(Saved{Gen: 1, Slot: 0, Tokens: 450}, Stop{1, tt.why})
					return
				}
				p.due(SaveWithin-time.Second, Stop{1, tt.why})
				p.on(Saved{Gen: 1, Slot: 0, Tokens: 450}) // it comes too late
			})
		}
	}
}

// A save that is under way when an instance begins to leave isn't begun again.
func TestSaving_LeavesDuringASave(t *testing.T) {
	t.Parallel()
	spec := choosy("a", 2)
	p := talked(t, saver, spec, "x", "y")
	p.due(time.Minute, Save{1, 1, false})
	p.at(unloader(9, "a"), Save{1, 0, true})
	p.on(Saved{Gen: 1, Slot: 0, Tokens: 450})
	p.on(Saved{Gen: 1, Slot: 1, Tokens: 450}, Stop{1, ForRequest})
}

// A busy instance is saved when its last request has ended.
func TestSaving_DrainsFirst(t *testing.T) {
	t.Parallel()
	spec := choosy("a", 2)
	p := talked(t, saver, spec, "x", "y")
	p.on(says(3, spec, "x", "x", "x", "x", "2"), Grant{3, 1, 1, false})
	p.on(unloader(9, "a"))
	p.never()
	p.on(heard(1, 3, 0, 480, 400, 50), Save{1, 0, true}, Save{1, 1, true})
	p.on(Saved{Gen: 1, Slot: 0, Tokens: 450})
	p.due(SaveWithin-time.Second, Stop{1, ForRequest})
}

// At the end, slots of requests under way aren't saved, and the requests hold nothing up.
func TestSaving_AtTheEndOnlyWhatIsIdle(t *testing.T) {
	t.Parallel()
	spec := choosy("a", 2)
	p := talked(t, saver, spec, "x", "y")
	p.on(says(3, spec, "x", "x", "x", "x", "2"), Grant{3, 1, 1, false})
	p.on(Closed{}, Save{1, 1, true})
	p.on(heard(1, 3, 0, 800, 400, 50))
	p.on(Saved{Gen: 1, Slot: 1, Tokens: 450}, Stop{1, ForClosing})

	p = talked(t, saver, spec, "x")
	p.on(says(3, spec, "x", "x", "x", "x", "2"), Grant{3, 1, 1, false})
	p.on(unloader(4, "a"))
	p.on(Closed{}, Stop{1, ForClosing}) // the only slot with anything is lent
}

// Nothing is saved of an engine that hangs.
func TestSaving_NotOfOneThatHangs(t *testing.T) {
	t.Parallel()
	p := talked(t, saver, choosy("a", 1), "x")
	p.on(Condemned{1, "it hangs"}, Stop{1, ForSilence})

	p = talked(t, saver, choosy("a", 1), "x")
	p.on(EndAsked{1}, Save{1, 0, true})
	p.on(Condemned{1, "it hangs"}, Stop{1, ForSilence})
	p.on(Saved{Gen: 1, Slot: 0})
	p.never()
}

// An eviction that is cancelled during its saves leaves the instance as it was.
func TestSaving_EvictionCancelled(t *testing.T) {
	t.Parallel()
	limits := Limits{Instances: 1, SaveTokens: 300, SaveAfter: time.Minute}
	spec := choosy("a", 2)
	p := talked(t, limits, spec, "x", "y")
	p.on(asks(9, choosy("b", 1)), Save{1, 1, true}, Save{1, 0, true})
	p.on(Saved{Gen: 1, Slot: 1, Tokens: 450})
	got := Step(&p.st, Configured{limits, map[uint64]*Spec{1: pinned(spec)}}, p.now)
	if in := p.st.Instances[0]; in.Status != Ready || len(got) != 1 {
		t.Fatalf("it is %v; effects %v", in.Status, got)
	}
	p.on(says(10, spec, "z", "z", "z", "z"), Grant{10, 1, 1, false}) // the slot that is saved already
	p.pass(SaveWithin)
	p.on(Tick{})
	p.on(says(11, spec, "w", "w", "w", "w"))
	p.on(Saved{Gen: 1, Slot: 0, Tokens: 450}, Grant{11, 1, 1, false})
	p.on(heard(1, 11, 0, 400, 0, 50))
	p.on(heard(1, 10, 1, 400, 0, 50))
	p.on(unloader(12, "a"), Save{1, 1, true}, Save{1, 0, true}) // it has as much time as before
	p.due(SaveWithin, Stop{1, ForRequest})
}

func TestSaving_Forgotten(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		what Forgot
		want bool // it is saved nevertheless
	}{
		"the owner":                         {Forgot{Owner: "ann"}, false},
		"the conversation":                  {Forgot{Conversation: "resp_1"}, false},
		"the model":                         {Forgot{Key: "a"}, false},
		"the owner's conversation":          {Forgot{Owner: "ann", Conversation: "resp_1"}, false},
		"another owner":                     {Forgot{Owner: "bob"}, true},
		"another conversation":              {Forgot{Owner: "ann", Conversation: "resp_2"}, true},
		"another owner's, with this name":   {Forgot{Owner: "bob", Conversation: "resp_1"}, true},
		"another model":                     {Forgot{Key: "b"}, true},
		"nothing, which isn't all there is": {Forgot{}, true},
	} {
		for _, when := range []string{"while it is in the slot", "while the request runs", "while it waits"} {
			t.Run(name+", "+when, func(t *testing.T) {
				t.Parallel()
				p := newPlay(t, saver)
				spec := choosy("a", 1)
				p.busy(spec)
				p.at(Savable{1})
				asked := says(1, spec, "x", "x", "x", "x")
				asked.Waiter.Owner, asked.Waiter.Conversation = "ann", "resp_1"
				p.at(asked)
				if when == "while it waits" {
					p.at(tt.what)
				}
				p.at(Returned{Gen: 1, Slots: 1, Waiter: 1001}, Grant{1, 1, 1, false})
				if when == "while the request runs" {
					p.at(tt.what)
				}
				p.at(heard(1, 1, 0, 400, 0, 50))
				if when == "while it is in the slot" {
					p.at(tt.what)
				}
				if tt.want {
					p.due(time.Minute, Save{1, 0, false})
				} else {
					p.never()
				}
			})
		}
	}
}

// Once nothing is saved any more, the files are deleted. What is still in the slots can be saved again later.
func TestSaving_SwitchedOffAndOn(t *testing.T) {
	t.Parallel()
	p := talked(t, saver, choosy("a", 1), "x")
	p.due(time.Minute, Save{1, 0, false})
	p.on(Saved{Gen: 1, Slot: 0, Tokens: 450})
	p.on(Configured{Limits{SaveTokens: 300}, nil})
	p.never()
	p.on(Configured{saver, nil}, Save{1, 0, false})
}

// What was saved and is deleted by the user is saved again after the next request, also if the save was under way.
func TestSaving_Cleared(t *testing.T) {
	t.Parallel()
	everything := func(string, string) bool { return true }
	for name, tt := range map[string]struct {
		match func(key, owner string) bool
		want  bool // it is saved again
	}{
		"all":           {everything, true},
		"another model": {func(key, _ string) bool { return key == "b" }, false},
		"another owner": {func(_, owner string) bool { return owner == "bob" }, false},
		"its own":       {func(key, owner string) bool { return key == "a" && owner == "" }, true},
	} {
		for _, when := range []string{"saved", "being saved", "being saved, in vain"} {
			t.Run(name+", "+when, func(t *testing.T) {
				t.Parallel()
				spec := choosy("a", 1)
				p := talked(t, saver, spec, "x")
				p.due(time.Minute, Save{1, 0, false})
				want := tt.want
				switch when {
				case "saved":
					p.on(Saved{Gen: 1, Slot: 0, Tokens: 450})
					p.on(Cleared{tt.match})
				case "being saved":
					p.on(Cleared{tt.match})
					p.on(Saved{Gen: 1, Slot: 0, Tokens: 450})
				default:
					p.on(Cleared{tt.match})
					p.on(Saved{Gen: 1, Slot: 0}) // the engine can't
					want = true
				}
				p.never()
				p.on(says(2, spec, "x", "x", "x", "x", "1"), Grant{2, 1, 1, false})
				p.on(heard(1, 2, 0, 460, 450, 5))
				if want {
					p.due(time.Minute, Save{1, 0, false})
				} else {
					p.never()
				}
			})
		}
	}
}
