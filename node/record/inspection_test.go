package record

import (
	"bytes"
	"net/http"
	"strconv"
	"testing"
)

// newInspections returns inspections of up to number requests.
func newInspections(number int) *Inspections {
	i := new(Inspections)
	i.SetMost(number)
	return i
}

func (i *Inspections) ids() (all string) {
	for _, s := range i.List() {
		all += s.ID + " "
	}
	return all
}

func TestInspect_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	list := newInspections(3)
	for i := range 5 {
		list.Begin(Summary{ID: strconv.Itoa(i)}, nil).End(&Summary{ID: strconv.Itoa(i), Outcome: OutcomeOK})
	}
	if got := list.ids(); got != "4 3 2 " {
		t.Errorf("%q", got)
	}
	if _, ok := list.Get("1"); ok {
		t.Error("the first are kept")
	}
	if in, ok := list.Get("3"); !ok || !in.Ended || in.Summary.Outcome != OutcomeOK {
		t.Errorf("%+v", in)
	}
	list.SetMost(1)
	if got := list.ids(); got != "4 " {
		t.Errorf("after new settings: %q", got)
	}
	list.SetMost(0)
	if got := list.ids(); got != "" || list.bytes != 0 {
		t.Errorf("after it was switched off: %q, %d bytes", got, list.bytes)
	}
}

func TestInspect_IsOff(t *testing.T) {
	t.Parallel()
	list := newInspections(0)
	in := list.Begin(Summary{ID: "x"}, nil)
	in.AddBody([]byte("a"))
	in.SetResponse(200, nil)
	u := in.Upstream("m", "/x", [][]byte{[]byte("b")})
	u.SetStatus(200)
	u.AddAnswer([]byte("c"))
	u.End()
	in.AddAnswer([]byte("d"))
	in.End(new(Summary))
	if in != nil || u != nil || len(list.List()) != 0 {
		t.Error("something is kept")
	}
}

func TestInspect_IsBounded(t *testing.T) {
	t.Parallel()
	list := newInspections(1000)
	large := bytes.Repeat([]byte("x"), mostOfText+10)
	for i := range 2 * mostInspected / mostOfInspection {
		in := list.Begin(Summary{ID: strconv.Itoa(i)}, nil)
		in.AddBody(large)
		for range 2 * mostUpstream {
			u := in.Upstream("m", "/x", [][]byte{large[:100], large})
			u.AddAnswer(large)
		}
		in.AddAnswer(large)
	}
	if b := list.bytes; b > mostInspected || b < mostInspected-mostOfInspection {
		t.Errorf("%d bytes", b)
	}
	all := list.List()
	whole, ok := list.Get(all[0].ID)
	if !ok || len(whole.Upstream) != mostUpstream {
		t.Fatalf("%d upstream requests", len(whole.Upstream))
	}
	if len(whole.Body.Beginning) != mostOfText || whole.Body.Size != int64(len(large)) {
		t.Errorf("of the body %d bytes of %d", len(whole.Body.Beginning), whole.Body.Size)
	}
	total := len(whole.Body.Beginning) + len(whole.Answer.Beginning)
	for _, u := range whole.Upstream {
		total += len(u.Body.Beginning) + len(u.Answer.Beginning)
	}
	if total > mostOfInspection || whole.Answer.Size != int64(len(large)) {
		t.Errorf("%d bytes of one request; the answer has %d", total, whole.Answer.Size)
	}
}

// Headers are the client's, and count.
func TestInspect_HeadersAreBounded(t *testing.T) {
	t.Parallel()
	list := newInspections(MaxInspect)
	header := http.Header{"User-Agent": {string(bytes.Repeat([]byte("x"), 1<<20)), "y"}}
	for range 2 * mostInspected >> 20 {
		list.Begin(Summary{}, header)
	}
	if kept := len(list.List()); kept != mostInspected>>20-1 || list.bytes > mostInspected {
		t.Errorf("%d requests of 1 MiB, %d bytes", kept, list.bytes)
	}
}

// A request that was dropped while it is answered takes no more memory.
func TestInspect_OfARequestThatWasDropped(t *testing.T) {
	t.Parallel()
	list := newInspections(1)
	first := list.Begin(Summary{ID: "1"}, nil)
	list.Begin(Summary{ID: "2"}, nil)
	first.AddBody([]byte("a"))
	first.End(new(Summary))
	if list.bytes != 0 || list.ids() != "2 " {
		t.Errorf("%d bytes, %q", list.bytes, list.ids())
	}
}
