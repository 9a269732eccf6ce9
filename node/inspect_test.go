package node

import (
	"bytes"
	"net/http"
	"strconv"
	"testing"
)

// keeping is a node of which only the inspections are used.
func keeping(number int) *Node {
	n := new(Node)
	n.settings.Store(&Settings{Inspect: number})
	return n
}

func (n *Node) ids() (all string) {
	for _, s := range n.Inspected() {
		all += s.ID + " "
	}
	return all
}

func TestInspect_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	n := keeping(3)
	for i := range 5 {
		n.Inspect(Summary{ID: strconv.Itoa(i)}, nil).Ended(&Summary{ID: strconv.Itoa(i), Outcome: OutcomeOK})
	}
	if got := n.ids(); got != "4 3 2 " {
		t.Errorf("%q", got)
	}
	if _, ok := n.InspectedRequest("1"); ok {
		t.Error("the first are kept")
	}
	if in, ok := n.InspectedRequest("3"); !ok || !in.Ended || in.Summary.Outcome != OutcomeOK {
		t.Errorf("%+v", in)
	}
	n.inspections.forget(1)
	if got := n.ids(); got != "4 " {
		t.Errorf("after new settings: %q", got)
	}
	n.inspections.forget(0)
	if got := n.ids(); got != "" || n.inspections.bytes != 0 {
		t.Errorf("after it was switched off: %q, %d bytes", got, n.inspections.bytes)
	}
}

func TestInspect_IsOff(t *testing.T) {
	t.Parallel()
	n := keeping(0)
	in := n.Inspect(Summary{ID: "x"}, nil)
	in.Asked([]byte("a"))
	in.Begun(200, nil)
	u := in.Upstream("m", "/x", [][]byte{[]byte("b")})
	u.Status(200)
	u.Answered([]byte("c"))
	u.End()
	in.Answered([]byte("d"))
	in.Ended(new(Summary))
	if in != nil || u != nil || len(n.Inspected()) != 0 {
		t.Error("something is kept")
	}
}

func TestInspect_IsBounded(t *testing.T) {
	t.Parallel()
	n := keeping(1000)
	large := bytes.Repeat([]byte("x"), mostOfText+10)
	for i := range 2 * mostInspected / mostOfInspection {
		in := n.Inspect(Summary{ID: strconv.Itoa(i)}, nil)
		in.Asked(large)
		for range 2 * mostUpstream {
			u := in.Upstream("m", "/x", [][]byte{large[:100], large})
			u.Answered(large)
		}
		in.Answered(large)
	}
	if b := n.inspections.bytes; b > mostInspected || b < mostInspected-mostOfInspection {
		t.Errorf("%d bytes", b)
	}
	all := n.Inspected()
	whole, ok := n.InspectedRequest(all[0].ID)
	if !ok || len(whole.Upstream) != mostUpstream {
		t.Fatalf("%d upstream requests", len(whole.Upstream))
	}
	if len(whole.Body.Kept) != mostOfText || whole.Body.Size != int64(len(large)) {
		t.Errorf("of the body %d bytes of %d", len(whole.Body.Kept), whole.Body.Size)
	}
	total := len(whole.Body.Kept) + len(whole.Answer.Kept)
	for _, u := range whole.Upstream {
		total += len(u.Asked.Kept) + len(u.Answer.Kept)
	}
	if total > mostOfInspection || whole.Answer.Size != int64(len(large)) {
		t.Errorf("%d bytes of one request; the answer has %d", total, whole.Answer.Size)
	}
}

// Headers are the client's, and count.
func TestInspect_HeadersAreBounded(t *testing.T) {
	t.Parallel()
	n := keeping(MaxInspect)
	header := http.Header{"User-Agent": {string(bytes.Repeat([]byte("x"), 1<<20)), "y"}}
	for range 2 * mostInspected >> 20 {
		n.Inspect(Summary{}, header)
	}
	if kept := len(n.Inspected()); kept != mostInspected>>20-1 || n.inspections.bytes > mostInspected {
		t.Errorf("%d requests of 1 MiB, %d bytes", kept, n.inspections.bytes)
	}
}

// A request that was dropped while it is answered takes no more memory.
func TestInspect_OfARequestThatWasDropped(t *testing.T) {
	t.Parallel()
	n := keeping(1)
	first := n.Inspect(Summary{ID: "1"}, nil)
	n.Inspect(Summary{ID: "2"}, nil)
	first.Asked([]byte("a"))
	first.Ended(new(Summary))
	if n.inspections.bytes != 0 || n.ids() != "2 " {
		t.Errorf("%d bytes, %q", n.inspections.bytes, n.ids())
	}
}
