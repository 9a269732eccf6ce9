package schedule

import (
	"strings"
	"testing"
	"time"
)

func crash(p *play, gen uint64, more ...Effect) {
	p.t.Helper()
	in := p.st.Find(gen)
	p.on(died(gen), append([]Effect{Crashed{in.ID, in.Spec.Model.Key, "exit status 1"}}, more...)...)
}

func TestFailure_WhatIsKeptComesBackByItself(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(autoRestart(specOf("a", 1)))
	p.idle(specOf("b", 1))
	crash(p, 1, Spawn{"a", 3})
	crash(p, 2)
	p.on(ready(3), Loaded{3})
	p.on(user(1, "b"), Spawn{"b", 4})
}

func TestFailure_KeepsItsName(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(autoRestart(specOf("a", 1)))
	p.on(loads(1, autoRestart(specOf("a", 1))), Spawn{"a:2", 2})
	p.on(ready(2), Loaded{2}, Grant{Waiter: 1, Gen: 2, SawLoad: true})
	crash(p, 1, Spawn{"a", 3})
	crash(p, 2, Spawn{"a:2", 4})
	p.on(loader(2, "a"), Spawn{"a:3", 5})
}

// The name of an instance that will be restarted stays reserved.
func TestFailure_TheNameOfWhatIsToComeBackIsTaken(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(autoRestart(specOf("a", 1)))
	p.st.Failures = map[string]*Failure{"a": {Count: 2, At: p.now}}
	crash(p, 1) // in a second
	p.at(loader(1, "a"), Spawn{"a", 2}, Spawn{"a:2", 3})
}

func TestFailure_BacksOffAndSaysWhy(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	for range 2 {
		p.on(user(1, "a"), Spawn{"a", p.st.LastGen + 1})
		p.on(died(p.st.LastGen), failed(1, "The model a could not be loaded: exit status 1"))
	}
	p.on(user(1, "a"), Spawn{"a", 3})
	p.on(died(3), failed(1, "The model a could not be loaded: exit status 1"))
	p.at(user(1, "a")) // a second is worth waiting for
	p.due(time.Second, Spawn{"a", 4})
	p.on(died(4), failed(1, "The model a could not be loaded: exit status 1"))
	p.at(user(1, "a"), Refuse{1, Error{Kind: LoadFailed, RetryAfter: 4 * time.Second, Message: "The model a failed 4 times in a row, and is tried again in 4s. The last time: The model a could not be loaded: exit status 1"}})
	p.never()
	for _, delay := range []time.Duration{16, 60, 60} {
		p.pass(time.Minute)
		p.on(user(1, "a"), Spawn{"a", p.st.LastGen + 1})
		p.on(died(p.st.LastGen), failed(1, "The model a could not be loaded: exit status 1"))
		if got := p.st.Failures["a"].Until.Sub(p.now); got != delay*time.Second {
			t.Errorf("it is left alone for %v, want %v", got, delay*time.Second)
		}
	}
	p.pass(forgetAfter)
	p.on(user(1, "a"), Spawn{"a", p.st.LastGen + 1})
	p.on(died(p.st.LastGen), failed(1, "The model a could not be loaded: exit status 1"))
	if n := p.st.Failures["a"].Count; n != 1 {
		t.Errorf("after a long time it counts %d failures, want 1", n)
	}
}

// fails makes a model fail until it backs off for 16 seconds.
func fails(p *play, spec *Spec) {
	p.st.Failures = map[string]*Failure{spec.Model.Key: {Count: 4, At: p.now, Message: "it broke", changed: spec.Model.Changed}}
	p.on(asks(900, spec), Spawn{spec.Model.Key, p.st.LastGen + 1})
	p.on(died(p.st.LastGen), failed(900, "The model a could not be loaded: exit status 1"))
}

func TestFailure_ANewChance(t *testing.T) {
	t.Parallel()
	spec := specOf("a", 1)
	changed := with(spec, func(s *Spec) { s.Model.Changed = noon })
	for name, ev := range map[string]Asked{"a load by hand": loads(2, spec), "a changed file": asks(2, changed)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, Limits{})
			fails(p, spec)
			p.on(asks(1, spec), Refuse{1, backingOff("a", p.st.Failures["a"], p.now.Add(time.Second))})
			p.on(ev, Spawn{"a", 2})
			p.on(died(2), failed(2, "The model a could not be loaded: exit status 1"))
			p.at(asks(3, ev.Waiter.Spec), Spawn{"a", 3}) // it counts from one again
		})
	}
}

// What the model was to draft with may be why, which is on by default.
func TestFailure_NamesWhatDrafts(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(asks(1, with(specOf("a", 1), func(s *Spec) { s.SelfDraft = HeadsDraft })), Spawn{"a", 1})
	p.on(died(1), failed(1, "The model a could not be loaded: exit status 1. It was to draft with its own layers: with draft_model off in its block it doesn't"))
}

// What is to come back some time does so at once when its model has a new chance, of the file as it is now.
func TestFailure_ANewChanceForWhatIsToComeBack(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	spec := autoRestart(specOf("a", 1))
	p.idle(spec)
	p.st.Failures = map[string]*Failure{"a": {Count: 4, At: p.now}}
	crash(p, 1)
	changed := with(specOf("a", 1), func(s *Spec) { s.Model.Changed = noon })
	p.on(asks(1, changed), Spawn{"a", 2})
	if in := p.st.Instances[0]; !in.Spec.AutoRestart || !in.Spec.Model.Changed.Equal(noon) {
		t.Errorf("it came back as %+v", in.Spec)
	}
	p.on(died(2), failed(1, "The model a could not be loaded: exit status 1"), Spawn{"a", 3})
}

// A new chance for one model is none for another, which keeps its own file.
func TestFailure_ANewChanceIsForOneModel(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(autoRestart(specOf("a", 1)))
	p.idle(autoRestart(specOf("b", 1)))
	p.st.Failures = map[string]*Failure{"a": {Count: 4, At: p.now}, "b": {Count: 4, At: p.now}}
	p.on(died(1), Crashed{"a", "a", "exit status 1"})
	p.at(died(2), Crashed{"b", "b", "exit status 1"})
	p.at(loader(1, "a"), Spawn{"a", 3}, Spawn{"a:2", 4})
	if w := p.st.Waiters[0]; w.Kind != WaitRestart || w.Spec.Model.Key != "b" || !w.NotBefore.After(p.now) {
		t.Errorf("b comes back as %+v of %+v", *w, *w.Spec)
	}
}

func TestFailure_ARequestThatWasCutOffIsNoProofOfSoundness(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	for n := 1; n <= 3; n++ {
		p.busy(specOf("a", 1))
		gen := p.st.LastGen
		p.on(Returned{Gen: gen, Slots: 1})
		crash(p, gen)
		if got := p.st.Failures["a"].Count; got != n {
			t.Fatalf("%d failures, want %d", got, n)
		}
	}
}

// The request may be the cause: others must not wait because of it.
func TestFailure_ACrashAmidARequestDoesNotCount(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	for range 5 {
		p.busy(autoRestart(specOf("a", 1)))
		gen := p.st.LastGen
		crash(p, gen, Spawn{"a", gen + 1})
		p.on(Returned{Gen: gen, Slots: 1})
		p.on(ready(gen+1), Loaded{gen + 1})
		p.on(unloader(1, "a"), Stop{gen + 1, ForRequest})
		p.on(stopped(gen+1), Grant{Waiter: 1})
		if f := p.st.Failures["a"]; f != nil {
			t.Fatalf("failures: %+v", f)
		}
	}
}

// A request doesn't shorten the back-off of a model that has one for other reasons.
func TestFailure_ACrashAmidARequestEndsNoBackOff(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(autoRestart(specOf("a", 1)))
	p.st.Failures = map[string]*Failure{"a": {Count: 4, At: p.now, Until: p.now.Add(11 * time.Second)}}
	crash(p, 1)
	p.due(10*time.Second, Spawn{"a", 2})
}

func TestFailure_AFinishedRequestIs(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	a := p.idle(specOf("a", 1))
	p.st.Failures = map[string]*Failure{"a": {Count: 4, At: noon}}
	p.on(user(1, "a"), Grant{1, a, 1, false})
	p.on(Returned{Gen: a, Slots: 1}) // the caller had gone: that says nothing
	if p.st.Failures["a"] == nil {
		t.Error("failures are forgotten for a request that was never sent")
	}
	p.on(user(2, "a"), Grant{2, a, 1, false})
	p.on(back(a))
	if f := p.st.Failures["a"]; f != nil {
		t.Errorf("failures are remembered of a model that works: %+v", f)
	}
	crash(p, a)
	if n := p.st.Failures["a"].Count; n != 1 {
		t.Errorf("%d failures, want 1", n)
	}
}

// An engine that answered and kept running was sound, even if it wasn't used again.
func TestFailure_ACrashLongAfterARequestCountsAnew(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.st.Failures = map[string]*Failure{"a": {Count: 4, At: noon}}
	a := p.idle(specOf("a", 1))
	crash(p, a)
	if n := p.st.Failures["a"].Count; n != 1 {
		t.Errorf("%d failures, want 1", n)
	}
}

func TestFailure_OfAnotherFileCountsAnew(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	a := p.idle(autoRestart(specOf("a", 1)))
	p.st.Failures = map[string]*Failure{"a": {Count: 4, At: p.now}}
	changed := with(autoRestart(specOf("a", 1)), func(s *Spec) { s.Model.Changed = noon })
	p.st.Instances[0].Answered = false
	p.on(configure(a, changed), Stop{a, ForSettings})
	p.on(stopped(a), Spawn{"a", 2})
	p.on(died(2), Spawn{"a", 3})
	if n := p.st.Failures["a"].Count; n != 1 {
		t.Errorf("%d failures, want 1", n)
	}
}

func TestFailure_AnEndAsWeWantedItForgetsFailuresToo(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.st.Failures = map[string]*Failure{"a": {Count: 4, At: noon}}
	a := p.idle(specOf("a", 1))
	p.on(unloader(1, "a"), Stop{a, ForRequest})
	p.on(stopped(a), Grant{Waiter: 1})
	if f := p.st.Failures["a"]; f != nil {
		t.Errorf("failures are remembered of a model that worked: %+v", f)
	}
}

func TestFailure_WhatIsKeptIsTriedAgainAndAgain(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	a := p.idle(autoRestart(specOf("a", 1)))
	crash(p, a, Spawn{"a", 2})
	p.on(died(2), Spawn{"a", 3})
	p.on(died(3))
	p.due(time.Second, Spawn{"a", 4})
	p.on(died(4))
	p.on(user(1, "a"), Refuse{1, Error{Kind: LoadFailed, RetryAfter: 3 * time.Second, Message: "The model a failed 4 times in a row, and is tried again in 3s. The last time: The model a could not be loaded: exit status 1"}})
	p.due(3*time.Second, Spawn{"a", 5})
	p.on(user(2, "a"))
	p.on(ready(5), Loaded{5}, Grant{2, 5, 1, true})
}

func TestFailure_AFirstLoadThatFailsDoesNotComeBack(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(loads(1, autoRestart(specOf("a", 1))), Spawn{"a", 1})
	p.on(died(1), failed(1, "The model a could not be loaded: exit status 1"))
	p.never()
}

func TestFailure_CondemnedIsEndedWithWhatItDoes(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(autoRestart(specOf("a", 1)))
	p.on(user(1, "a"))
	p.on(Condemned{1, "it hangs"}, Stop{1, ForSilence})
	p.on(Condemned{1, "it hangs"}) // once is enough
	p.on(back(1))
	p.on(stopped(1), Crashed{"a", "a", "it hangs"}, Spawn{"a", 2})
	p.on(ready(2), Loaded{2}, Grant{1, 2, 1, true})
	if f := p.st.Failures["a"]; f != nil {
		t.Errorf("failures: %+v", f)
	}
}

// A client that makes an engine hang and disconnects must not cause a back-off.
func TestFailure_HangingDoesNotCount(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.st.Failures = map[string]*Failure{"a": {Count: 2, At: p.now}}
	p.on(Condemned{1, "it hangs"}, Stop{1, ForSilence})
	p.on(Returned{Gen: 1, Slots: 1}) // of the request that found it hanging
	p.on(stopped(1), Crashed{"a", "a", "it hangs"})
	if n := p.st.Failures["a"].Count; n != 2 {
		t.Errorf("%d failures, want 2", n)
	}
}

func TestFailure_CondemnedWhileItWasToGoDoesNotComeBack(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(autoRestart(specOf("a", 1)))
	p.on(unloader(1, "a"))
	p.on(Condemned{1, "it hangs"}, Stop{1, ForSilence})
	p.on(stopped(1), Grant{Waiter: 1})
	p.names()
}

func TestFailure_CrashingWhileItWasToGoDoesNotComeBack(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(autoRestart(specOf("a", 1)))
	p.on(unloader(1, "a"))
	p.on(died(1), Crashed{"a", "a", "exit status 1"}, Grant{Waiter: 1})
	if f := p.st.Failures["a"]; f != nil {
		t.Errorf("failures: %+v", f)
	}
}

func TestFailure_CondemnedBeforeItIsReadyIsTheLoadsOwnMatter(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(user(1, "a"), Spawn{"a", 1})
	p.on(Condemned{1, "it hangs"})
	p.on(ready(1), Loaded{1}, Grant{1, 1, 1, true})
}

// The output of a ready engine may quote requests: operators see it, clients don't.
func TestFailure_ClientsSeeNoLastWords(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	const words = "exit status 1; its last words: prompt: my password is hunter2"
	for range 4 {
		p.on(user(1, "a"), Spawn{"a", p.st.LastGen + 1})
		gen := p.st.LastGen
		p.on(ready(gen), Loaded{gen}, Grant{1, gen, 1, true})
		p.on(Returned{Gen: gen, Slots: 1})
		p.on(Exited{Gen: gen, Reason: words}, Crashed{"a", "a", words})
		p.now = p.st.Failures["a"].Until
	}
	f := p.st.Failures["a"]
	if !strings.Contains(f.Message, "hunter2") {
		t.Errorf("operators aren't told: %q", f.Message)
	}
	if got := backingOff("a", f, f.At).Message; strings.Contains(got, "hunter2") || !strings.HasSuffix(got, "its engine ended unexpectedly") {
		t.Errorf("clients are told %q", got)
	}
}

// A load that fails because this server has no file descriptor left says nothing about the model: it is retried once a
// second while requests wait, and instances with AutoRestart come back.
func TestFailure_WithoutFileDescriptorsNothingIsCounted(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	none := func(gen uint64) Exited {
		return Exited{Gen: gen, Reason: "pipe2: too many open files", NoFiles: "no files"}
	}
	p.on(user(1, "a"), Spawn{"a", 1})
	p.on(none(1), Refuse{1, noFiles("no files")})
	for gen := uint64(2); gen < 10; gen++ {
		p.at(user(1, "a"))
		p.at(user(2, "a"))
		p.due(time.Second, Spawn{"a", gen})
		p.at(none(gen), Refuse{1, noFiles("no files")}, Refuse{2, noFiles("no files")})
	}
	if f := p.st.Failures["a"]; f.Count != 0 || f.Message != "no files" {
		t.Errorf("%d failures are counted, and %q is told", f.Count, f.Message)
	}
	p.at(user(1, "a"))
	p.due(time.Second, Spawn{"a", 10})
	p.on(ready(10), Loaded{10}, Grant{1, 10, 1, true})
	p.on(back(10))

	gen := p.idle(autoRestart(specOf("b", 1)))
	crash(p, gen, Spawn{"b", gen + 1})
	p.on(none(gen + 1))
	p.due(time.Second, Spawn{"b", gen + 2})
	p.on(ready(gen+2), Loaded{gen + 2})
}

// A request waits for the next attempt if that is no longer than patience away.
func TestFailure_Patience(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.st.Failures = map[string]*Failure{"a": {Count: 3, At: p.now, Until: p.now.Add(patience)}}
	p.at(user(1, "a"))
	p.due(patience, Spawn{"a", 1})
}

// New settings may repair what failed.
func TestFailure_IsForgottenWithNewSettings(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	spec := specOf("a", 1)
	for range 5 {
		p.st.Failures.add(spec, "its engine is missing", p.now)
	}
	p.on(Configured{Specs: map[uint64]*Spec{}})
	p.at(user(1, "a"), Refuse{1, backingOff("a", p.st.Failures["a"], p.now)})
	p.on(Configured{})
	p.on(user(2, "a"), Spawn{"a", 1})
}

// What waits for its restart is started with the new settings, at once.
func TestFailure_ARestartHasTheNewSettings(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	old, repaired := autoRestart(specOf("a", 1)), autoRestart(with(specOf("a", 1), func(s *Spec) { s.Args = []string{"-v"} }))
	p.idle(old)
	for range 4 {
		p.st.Failures.add(old, "its engine is missing", p.now)
	}
	crash(p, 1)
	p.on(RestartsConfigured{map[string]*Spec{"a": repaired, "b": repaired}}, Spawn{"a", 2})
	if got := p.st.Find(2).Spec; got != repaired {
		t.Errorf("it is started with %+v", got)
	}
}
