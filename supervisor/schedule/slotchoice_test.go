package schedule

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// messages returns the chain of a system prompt of about system hundred tokens, and of others of a hundred tokens each.
func messages(system int, others ...string) prefix.Chain {
	return chainOf(append(slices.Repeat([]string{"s"}, system), others...)...)
}

// hundreds is the answer on a slot to a prompt of n hundred tokens.
func hundreds(slot, n, completion int) Use {
	return Use{Slot: slot, Begun: true, Prompt: 100 * n, Completion: completion}
}

// held is a slot that has held a prompt for a time.
type held struct {
	prompt prefix.Chain
	tokens int // of the answer
	ago    time.Duration
	owner  string
}

// A slot is worth what a request can use in it, and what it would lose.
func TestSlotChoice(t *testing.T) {
	t.Parallel()
	long := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}
	talk := func(system, n int) prefix.Chain { return messages(system, long[:n]...) }
	for name, tt := range map[string]struct {
		slots   []held
		request prefix.Chain
		private bool
		want    int
	}{
		"the conversation goes on":                       {[]held{{}, {prompt: talk(1, 5), tokens: 500}}, talk(1, 7), false, 1},
		"it goes on where it is longest":                 {[]held{{prompt: talk(1, 4)}, {prompt: talk(1, 6)}, {}}, talk(1, 8), false, 1},
		"a title, with the same system prompt":           {[]held{{prompt: talk(2, 10)}, {}}, messages(2, "title"), false, 1},
		"a title, where a short one is all that is lost": {[]held{{prompt: talk(2, 10)}, {prompt: messages(2, "x")}}, messages(2, "title"), false, 1},
		"an agent beside a short talk":                   {[]held{{prompt: talk(80, 3), tokens: 100}, {}}, messages(80, "z"), false, 0},
		"an agent beside a long talk":                    {[]held{{prompt: talk(80, 12), tokens: 100}, {}}, messages(80, "z"), false, 1},
		"the same question again":                        {[]held{{}, {prompt: talk(1, 3), tokens: 2000}}, talk(1, 3), false, 1},
		"another last question":                          {[]held{{}, {prompt: talk(1, 12)}}, append(talk(1, 11), messages(1, "z")[1]), false, 1},
		"nothing in common, and one was never used":      {[]held{{prompt: talk(1, 2)}, {}, {}}, messages(2, "z"), false, 1},
		"nothing in common, and the least is lost":       {[]held{{prompt: talk(1, 4), ago: time.Minute}, {prompt: talk(1, 2)}}, chainOf("z"), false, 1},
		"nothing in common, and it is old":               {[]held{{prompt: talk(1, 8), ago: time.Hour}, {prompt: talk(1, 2)}}, chainOf("z"), false, 0},
		"nothing in common, and the same is lost":        {[]held{{prompt: talk(1, 2)}, {prompt: chainOf("u", "v", "w")}}, chainOf("z"), false, 0},
		"another's, where owners aren't isolated":        {[]held{{}, {prompt: talk(1, 5), owner: "bob"}}, talk(1, 7), false, 1},
		"another's, where they are":                      {[]held{{}, {prompt: talk(1, 5), owner: "bob"}}, talk(1, 7), true, 0},
		"another's is the last choice":                   {[]held{{prompt: talk(1, 1), owner: "bob", ago: time.Hour}, {prompt: talk(20, 12)}}, chainOf("z"), true, 1},
		"of others', the least is lost":                  {[]held{{prompt: talk(1, 4), owner: "bob"}, {prompt: talk(1, 1), owner: "cid"}}, talk(1, 7), true, 1},
		"no chain, and the least is lost":                {[]held{{prompt: talk(1, 4)}, {prompt: talk(1, 2)}}, nil, false, 1},
		"no chain, and one before had none":              {[]held{{tokens: 50}, {}}, nil, false, 0},
		"no chain, and its own before had one":           {[]held{{prompt: talk(1, 4), tokens: 50}, {}}, nil, false, 1},
		"no chain, and another's before had none":        {[]held{{tokens: 50, owner: "bob"}, {}}, nil, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLending(t, len(tt.slots), func(s *Spec) { s.Slotted, s.Private = true, tt.private })
			l.in.book = &slotBook{slots: make([]slotState, len(tt.slots)), private: tt.private}
			for i, h := range tt.slots {
				if h.prompt == nil && h.tokens == 0 {
					continue
				}
				s := &l.in.book.slots[i]
				by := Waiter{Demand: Demand{Owner: h.owner, Prompt: h.prompt}}
				l.in.book.change(s, &by, hundreds(i, len(h.prompt), h.tokens))
				l.in.book.turn++
				s.turn, s.used = l.in.book.turn, l.now.Add(-h.ago)
			}
			if got := l.in.book.choose(nil, 1, &Waiter{Demand: Demand{Prompt: tt.request}}, l.now); len(got) != 1 || got[0].id != tt.want {
				t.Errorf("slot %v, want %d", got, tt.want)
			}
		})
	}
}

// Several answers get the best slots, in order, and one that holds only a part of the prompt is worth that.
func TestSlotChoice_Several(t *testing.T) {
	t.Parallel()
	l := newLending(t, 4, choosing)
	l.lend(Waiter{ID: 1, Demand: Demand{Prompt: chainOf("a", "b", "c")}}, Loan{Reuse: true})
	l.lend(Waiter{ID: 2, Demand: Demand{Prompt: chainOf("a", "b", "x", "y")}}, Loan{Slot: 1, Reuse: true})
	l.lend(Waiter{ID: 3, Demand: Demand{Prompt: chainOf("z")}}, Loan{Slot: 2, Reuse: true})
	l.back(1, hundreds(0, 3, 10))
	l.back(2, hundreds(1, 4, 10))
	l.back(3, hundreds(2, 1, 10))
	l.lend(Waiter{ID: 4, Demand: Demand{Prompt: chainOf("a", "b", "c", "d")}}, Loan{Reuse: true, Common: 300}, Loan{Slot: 2, Reuse: true}, Loan{Slot: 3, Reuse: true})
}

// A waiter whose conversation is being saved waits for that, and no longer. Others take the other slots meanwhile, and nobody
// evicts the instance.
func TestSlotChoice_WaitsForASave(t *testing.T) {
	t.Parallel()
	limits := Limits{Instances: 1, SaveTokens: 300, SaveAfter: time.Minute}
	spec := choosy("a", 2)
	p := newPlay(t, limits)
	p.idle(spec)
	p.at(Savable{1})
	long := slices.Repeat([]string{"x"}, 10)
	p.at(says(1, spec, long...), Grant{1, 1, 1, false})
	p.at(heard(1, 1, 0, 1000, 0, 50))
	p.due(time.Minute, Save{1, 0, false})
	goesOn := says(2, spec, append(long, "y")...)
	p.at(goesOn)
	p.at(asks(3, choosy("b", 1)))
	p.at(says(4, spec, "z"), Grant{4, 1, 1, false})
	if got := p.st.Loans(p.st.Instances[0], 4); got[0].Slot != 1 {
		t.Errorf("loans %+v", got)
	}
	p.at(Returned{Gen: 1, Slots: 1, Waiter: 4})
	p.waits(2, 3)
	p.at(Saved{Gen: 1, Slot: 0, Tokens: 1050}, Grant{2, 1, 1, false})
	want := []Loan{{Slot: 0, Reuse: true, Common: 1000}}
	if diff := cmp.Diff(want, p.st.Loans(p.st.Instances[0], 2), cmp.AllowUnexported(Loan{})); diff != "" {
		t.Errorf("loans (-want +got):\n%s", diff)
	}
}

// What is being saved isn't waited for if it has little more of the prompt than another slot.
func TestSlotChoice_DoesNotWaitForLittle(t *testing.T) {
	t.Parallel()
	for tokens, waits := range map[int]bool{farMore - 1: false, farMore: true} {
		p := newPlay(t, saver)
		spec := choosy("a", 2)
		p.idle(spec)
		p.at(Savable{1})
		p.at(says(1, spec, "x", "x"), Grant{1, 1, 1, false})
		p.at(heard(1, 1, 0, tokens, 0, 50))
		p.due(time.Minute, Save{1, 0, false})
		if goesOn := says(2, spec, "x", "x", "y"); waits {
			p.at(goesOn)
		} else {
			p.at(goesOn, Grant{2, 1, 1, false})
		}
	}
}

// What is being saved isn't waited for if it won't be taken after all, since too much would be lost.
func TestSlotChoice_DoesNotWaitForWhatItWouldLose(t *testing.T) {
	t.Parallel()
	p := newPlay(t, saver)
	spec := choosy("a", 2)
	p.idle(spec)
	p.at(Savable{1})
	long := append(slices.Repeat([]string{"s"}, 7), slices.Repeat([]string{"x"}, 7)...)
	p.at(says(1, spec, long...), Grant{1, 1, 1, false})
	p.at(heard(1, 1, 0, 1400, 0, 50))
	p.due(time.Minute, Save{1, 0, false})
	p.at(says(2, spec, append(long[:7:7], "y")...), Grant{2, 1, 1, false})
}

// An idle instance isn't evicted while a waiter waits for a save of it.
func TestSlotChoice_WaitsForASaveUnderLowerLimits(t *testing.T) {
	t.Parallel()
	p := talked(t, saver, choosy("a", 1), "x")
	p.idle(choosy("b", 1)) // the most recently used one stays
	p.due(time.Minute-3*time.Second, Save{1, 0, false})
	p.at(says(9, choosy("a", 1), "x", "x", "x", "x"))
	p.at(Configured{Limits{Instances: 1, SaveTokens: 300, SaveAfter: time.Minute}, nil})
	p.at(Saved{Gen: 1, Slot: 0, Tokens: 450}, Grant{9, 1, 1, false}, Stop{2, ForRoom}) // now a is the one that was used last
}

// Nor is it made smaller for another model.
func TestSlotChoice_WaitsForASaveInFullSize(t *testing.T) {
	t.Parallel()
	limits := Limits{Memory: 50, SaveTokens: 300, SaveAfter: time.Minute}
	spec := with(slotted("a", 3), choosing)
	p := newPlay(t, limits)
	p.idle(spec)
	p.at(Savable{1})
	long := slices.Repeat([]string{"x"}, 10)
	p.at(says(1, spec, long...), Grant{1, 1, 1, false})
	p.at(heard(1, 1, 0, 1000, 0, 50))
	p.due(time.Minute, Save{1, 0, false})
	p.at(says(2, spec, append(long, "y")...))
	p.at(asks(3, sized("b", 20)))
	p.slots(3)
	p.at(Saved{Gen: 1, Slot: 0, Tokens: 1050}, Grant{2, 1, 1, false})
}

// Of two instances of a model, the one that holds the conversation is better, though it is busier.
func TestSlotChoice_OfTheInstanceToo(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	spec := choosy("a", 3)
	p.idle(spec)
	p.on(loads(50, spec), Spawn{"a:2", 2})
	p.on(ready(2), Loaded{2}, Grant{50, 2, 0, true})
	long := slices.Repeat([]string{"x"}, 10)
	p.on(says(1, spec, long...), Grant{1, 1, 1, false})
	p.on(heard(1, 1, 0, 1000, 0, 50))
	p.on(says(2, spec, "z"), Grant{2, 1, 1, false})
	p.on(says(3, spec, append(long, "y")...), Grant{3, 1, 1, false})
	p.on(says(4, spec, append(long, "y")...), Grant{4, 2, 1, false}) // that slot is lent now
}

func TestDisplaced(t *testing.T) {
	t.Parallel()
	caching := func(s *Spec) { s.Slotted, s.PromptCache = true, 100_000 }
	x, y := []string{"s", "x", "x", "x"}, []string{"s", "y", "y", "y"}
	l := newLending(t, 1, caching)
	l.talk(1, Waiter{Demand: Demand{Prompt: chainOf(x...)}}, hundreds(0, 4, 20), Loan{Reuse: true})
	l.in.book.slots[0].holds.saved = 420
	l.talk(2, Waiter{Demand: Demand{Prompt: chainOf(y...)}}, hundreds(0, 4, 20), Loan{Reuse: true, Common: 100})
	l.lend(Waiter{ID: 3, Demand: Demand{Prompt: chainOf(append(x, "1")...)}}, Loan{Reuse: true, Common: 100, Cached: 400})
	l.back(3, Use{Slot: 0, Begun: true, Prompt: 520, Cached: 410, Completion: 10})
	if got := l.in.book.slots[0].holds.saved; got != 410 {
		t.Errorf("%d tokens are saved, want 410: it was before it was displaced", got)
	}
	// Now the slot holds x, and the cache y, but no longer the beginning of x. It has no more in common with others than the slot.
	l.lend(Waiter{ID: 10, Demand: Demand{Prompt: chainOf("s", "z")}}, Loan{Reuse: true, Common: 104})
	l.back(10)
	l.lend(Waiter{ID: 4, Demand: Demand{Prompt: chainOf(append(x, "1")...)}}, Loan{Reuse: true, Common: 520})
	l.back(4)
	l.talk(5, Waiter{Demand: Demand{Prompt: chainOf(append(y, "1")...)}}, Use{Prompt: 520, Cached: 400, Completion: 10}, Loan{Reuse: true, Common: 104, Cached: 400})
	// A restored state takes the place of what the slot held, which isn't cached then.
	l.lend(Waiter{ID: 6, Demand: Demand{Prompt: chainOf("z", "z", "z", "z")}}, Loan{Reuse: true})
	l.back(6, Use{Slot: 0, Begun: true, Restored: 400, Prompt: 400, Cached: 399, Completion: 10})
	l.lend(Waiter{ID: 7, Demand: Demand{Prompt: chainOf(append(y, "1", "2")...)}}, Loan{Reuse: true, Cached: 104})
	l.back(7)
	// What leaves half of a slot's content in place doesn't touch the cache.
	l.talk(8, Waiter{Demand: Demand{Prompt: chainOf("z", "z", "z", "9")}}, hundreds(0, 4, 10), Loan{Reuse: true, Common: 300})
	if got := len(l.in.book.displaced); got != 1 {
		t.Errorf("%d contents are in the cache, want 1", got)
	}
}

// The engine drops what is the beginning of another content.
func TestDisplaced_Beginnings(t *testing.T) {
	t.Parallel()
	of := func(messages ...string) (c content) {
		c.Prompt = chainOf(messages...)
		c.PromptTokens, c.Tokens = 100*len(messages), 100*len(messages)
		return c
	}
	d := displaced{of("x"), of("y"), of("x", "y")}
	if before := d.exchange(of("x", "y", "z"), chainOf("u")); len(before.Prompt) != 3 {
		t.Errorf("%d links are continued", len(before.Prompt))
	}
	if len(d) != 2 || len(d[0].Prompt) != 1 || d[0].Prompt.Common(chainOf("y")) != 1 || len(d[1].Prompt) != 3 {
		t.Errorf("%+v", d)
	}
}

func TestDisplaced_Bound(t *testing.T) {
	t.Parallel()
	d := func(tokens ...int) (d displaced) {
		for _, n := range tokens {
			var c content
			c.Tokens = n
			d = append(d, c)
		}
		return d
	}
	for name, tt := range map[string]struct {
		have     displaced
		cache    int64
		perToken float64
		want     displaced
	}{
		"there is room":             {d(1, 2, 3), 600, 100, d(1, 2, 3)},
		"the oldest go":             {d(1, 2, 3), 599, 100, d(2, 3)},
		"the size is unknown":       {d(1, 2, 3), 1, 0, d(1, 2, 3)},
		"the last is too large":     {d(1, 2, 30), 599, 100, d()},
		"the engine caches nothing": {d(1, 2, 3), 0, 0, d()},
		"there are too many":        {d(make([]int, maxDisplaced+3)...), 100, 0, d(make([]int, maxDisplaced)...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.have.bound(tt.cache, tt.perToken)
			if diff := cmp.Diff(tt.want, tt.have, cmp.AllowUnexported(content{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A lease is told what would be lost by restoring another state into its slot.
func TestLoans_Unsaved(t *testing.T) {
	t.Parallel()
	p := talked(t, saver, choosy("a", 1), "x")
	p.on(says(9, choosy("a", 1), "y"), Grant{9, 1, 1, false})
	got := p.st.Loans(p.st.Instances[0], 9)
	if len(got) != 1 || got[0].Unsaved == nil {
		t.Fatalf("%+v", got)
	}
	state := *got[0].Unsaved
	if state.Tokens != 450 || state.PromptTokens != 400 || state.Prompt.Common(chainOf("x", "x", "x", "x")) != 4 {
		t.Errorf("%+v", state)
	}
	p.on(Returned{Gen: 1, Slots: 1, Waiter: 9})
	p.pass(time.Minute)
	p.on(Tick{}, Save{1, 0, false})
	p.on(Saved{Gen: 1, Slot: 0, Tokens: 450})
	p.on(says(10, choosy("a", 1), "y"), Grant{10, 1, 1, false})
	if got := p.st.Loans(p.st.Instances[0], 10); got[0].Unsaved != nil {
		t.Errorf("it is saved: %+v", got)
	}
}
