package supervisor

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// The requests of a lease take its slots in turn. A slot whose prompt is somebody else's is used again once its own is there.
func TestPin_RequestsOfALeaseTakeTurns(t *testing.T) {
	t.Parallel()
	type use struct {
		slot  int
		reuse bool
	}
	l := &Lease{pins: make([]pin, 3)}
	l.pins[0].Loan, l.pins[1].Loan, l.pins[2].Loan = schedule.Loan{Slot: 1, Reuse: true}, schedule.Loan{Slot: 3, Reuse: false}, schedule.Loan{Slot: 4, Reuse: false}
	for i, want := range []use{{1, true}, {3, false}, {4, false}, {1, true}, {3, true}} {
		var got use
		body := l.Pinned(Payload{}, func(body [][]byte, slot int, reuse bool) [][]byte {
			got = use{slot, reuse}
			return append(body, []byte("pinned"))
		})
		if got != want || len(body.Pieces) != 1 || body.pin == nil {
			t.Errorf("request %d uses %+v, want %+v: %+v", i, got, want, body)
			continue
		}
		body.pin.used.Store(true)
	}
	none := (&Lease{}).Pinned(Payload{}, func([][]byte, int, bool) [][]byte {
		t.Error("a lease without slots of its own pins requests")
		return nil
	})
	if none.pin != nil {
		t.Errorf("%+v", none)
	}
}
