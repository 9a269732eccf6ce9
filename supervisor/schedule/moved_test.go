package schedule

import "testing"

// A conversation that a request would move out of its slot is saved before, once it has been continued and when it has grown by half.
func TestSaving_BeforeItIsMoved(t *testing.T) {
	t.Parallel()
	spec := choosy("a", 1)
	spec.PromptCache = 1 << 30
	p := talked(t, saver, spec, "x")
	waiter := uint64(1)
	isMoved := func(uses Use, messages ...string) bool {
		t.Helper()
		waiter++
		p.at(says(waiter, spec, messages...), Grant{waiter, 1, 1, false})
		moved := p.st.Loans(p.st.Find(1), waiter)[0].IsMoved
		uses.Begun = true
		p.at(Returned{Gen: 1, Slots: 1, Waiter: waiter, Used: []Use{uses}})
		return moved
	}
	if isMoved(Use{Prompt: 10, Completion: 5}, "title") {
		t.Error("a single request is saved")
	}
	if isMoved(Use{Prompt: 470, Cached: 450, Completion: 50}, "x", "x", "x", "x", "1", "2") {
		t.Error("the question between is saved")
	}
	if !isMoved(Use{Prompt: 10, Completion: 5, Saved: 520}, "title") {
		t.Error("the conversation isn't saved")
	}
	isMoved(Use{Prompt: 540, Cached: 520, Completion: 50}, "x", "x", "x", "x", "1", "2", "3", "4")
	if isMoved(Use{Prompt: 10, Completion: 5}, "title") {
		t.Error("it is saved again")
	}
	isMoved(Use{Prompt: 1000, Cached: 590, Completion: 50}, "x", "x", "x", "x", "1", "2", "3", "4", "5", "6")
	if !isMoved(Use{Prompt: 10, Completion: 5}, "title") {
		t.Error("it has doubled, and isn't saved")
	}
}
