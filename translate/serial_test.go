package translate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSerial(t *testing.T) {
	t.Parallel()
	start := func(i int) Event { return CallStart{Index: i, Name: string(rune('a' + i))} }
	args := func(i int, text string) Event { return CallArgs{Index: i, Text: text} }
	done := func(i int) Event { return CallDone{Index: i} }
	finish := Finish{FinishToolCalls}
	for name, tt := range map[string]struct{ in, want []Event }{
		"one after the other": {
			[]Event{Text{"t"}, start(0), args(0, "1"), done(0), start(1), args(1, "2"), done(1), finish},
			[]Event{Text{"t"}, start(0), args(0, "1"), done(0), start(1), args(1, "2"), done(1), finish},
		},
		"interleaved": {
			[]Event{start(0), start(1), args(1, "2"), args(0, "1"), args(1, "3"), done(1), done(0), finish},
			[]Event{start(0), args(0, "1"), done(0), start(1), args(1, "2"), args(1, "3"), done(1), finish},
		},
		"three": {
			[]Event{start(0), start(1), start(2), args(2, "x"), args(1, "y"), done(0), args(2, "X"), done(2), done(1), finish},
			[]Event{start(0), done(0), start(1), args(1, "y"), done(1), start(2), args(2, "x"), args(2, "X"), done(2), finish},
		},
		"figures pass": {
			[]Event{start(0), start(1), Usage{Prompt: 1}, done(0), done(1), finish},
			[]Event{start(0), Usage{Prompt: 1}, done(0), start(1), done(1), finish},
		},
		"cut off": {
			[]Event{start(0), start(1), args(0, "1"), args(1, "2"), Finish{FinishLength}},
			[]Event{start(0), args(0, "1"), start(1), args(1, "2"), Finish{FinishLength}},
		},
		"text behind an open call": {
			[]Event{start(0), start(1), args(1, "2"), Text{"t"}, finish},
			[]Event{start(0), start(1), args(1, "2"), Text{"t"}, finish},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s Serial
			var got []Event
			for _, ev := range tt.in {
				s.Add(ev, func(ev Event) { got = append(got, ev) })
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
