package echoengine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

// The events are the same however the bytes arrive, and the last of them is a Finish or a Fault.
func TestDecoder(t *testing.T) {
	t.Parallel()
	nonsense := translate.Fault{Err: translate.Nonsense()}
	for name, tt := range map[string]struct {
		stream string
		want   []translate.Event
	}{
		"a text": {
			`{"heard":3}` + "\n" + `{"think":"hm"}` + "\n" + `{"say":"yes"}` + "\n" + `{"done":"end","out":2}` + "\n" + "behind the end\n",
			[]translate.Event{
				translate.Prompt{Total: 3, Processed: 3},
				translate.Reasoning{Text: "hm"},
				translate.Text{Text: "yes"},
				translate.Usage{Prompt: 3, Completion: 2, Reasoning: 1},
				translate.Finish{Reason: translate.FinishStop},
			},
		},
		"calls": {
			`{"call":0,"name":"a"}` + "\n" + `{"call":1,"name":"b"}` + "\n" + `{"call":0,"args":"{}"}` + "\n" + `{"done":"limit"}` + "\n",
			[]translate.Event{
				translate.CallStart{Name: "a"},
				translate.CallStart{Index: 1, Name: "b"},
				translate.CallArgs{Text: "{}"},
				translate.CallDone{},
				translate.CallDone{Index: 1},
				translate.Usage{},
				translate.Finish{Reason: translate.FinishLength},
			},
		},
		"broken off":      {`{"say":"y"}` + "\n" + `{"say":`, []translate.Event{translate.Text{Text: "y"}, translate.Fault{Err: translate.BrokenOff()}}},
		"nothing":         {"", []translate.Event{translate.Fault{Err: translate.BrokenOff()}}},
		"no JSON":         {"bla\n" + `{"say":"y"}` + "\n", []translate.Event{nonsense}},
		"an unknown line": {`{"sing":"la"}` + "\n", []translate.Event{nonsense}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for piece := 1; piece <= len(tt.stream)+1; piece++ {
				var got []translate.Event
				note := func(ev translate.Event) error {
					got = append(got, ev)
					return nil
				}
				d := Wire{}.Decoder()
				for rest := tt.stream; rest != ""; {
					n := min(piece, len(rest))
					if err := d.Feed([]byte(rest[:n]), note); err != nil {
						t.Fatal(err)
					}
					rest = rest[n:]
				}
				if err := d.Close(note); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Fatalf("in pieces of %d bytes (-want +got):\n%s", piece, diff)
				}
			}
		})
	}
}
