package models

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit/kittest"
)

func TestLoad_ShowsItsProgress(t *testing.T) {
	t.Parallel()
	const load = "POST /api/v1/models/load"
	const begun = "data: {\"type\":\"model_load.start\"}\n\ndata: {\"type\":\"model_load.progress\",\"progress\":0.5}\n\n"
	const loaded = `{"instance_id":"p/a","load_time_seconds":1.25,"status":"loaded","load_config":{"context_length":512}}`
	for name, tt := range map[string]struct{ answer, out, notes, fail string }{
		"a stream": {begun + `data: {"type":"model_load.end","result":` + loaded + "}\n\n", "p/a is loaded", "loading p/a  0%", ""},
		"JSON":     {loaded, "p/a is loaded", "", ""},
		"failing":  {begun + `data: {"type":"error","error":{"message":"No memory."}}` + "\n\n", "", "", "No memory."},
		"cut":      {begun, "", "", "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, notes, err := kittest.TalkTo(t, DefineLoad, map[string]string{load: tt.answer}, "p/a")
			switch {
			case tt.fail != "":
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Error(err)
				}
			case err != nil || !strings.HasPrefix(out, tt.out) || !strings.Contains(notes, tt.notes):
				t.Errorf("%v: %q, %q", err, out, notes)
			}
		})
	}
}
