package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit/kittest"
	"github.com/lmcaddy/lmcaddy/caddymodule/doctor"
)

func TestWriteExamined(t *testing.T) {
	t.Parallel()
	r := doctor.Report{Problems: 1, Findings: []doctor.Finding{
		{Check: "home", Status: doctor.OK, Message: "The home is /srv/lm."},
		{Check: "configuration", Status: doctor.Problem, Message: "Anybody who can reach this machine can use the models.", Advice: "Put lm_auth before lm_api."},
	}}
	for name, tt := range map[string]struct {
		onlyBad bool
		want    string
	}{
		"all": {false, `ok       home           The home is /srv/lm.
problem  configuration  Anybody who can reach this machine
                        can use the models.
                        Put lm_auth before lm_api.

1 problem, 0 warnings.
`},
		"problems": {true, `problem  configuration  Anybody who can reach this machine
                        can use the models.
                        Put lm_auth before lm_api.

1 problem, 0 warnings.
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := kittest.Narrow{Width: 60}
			if err := writeExamined(&out, r, tt.onlyBad); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
