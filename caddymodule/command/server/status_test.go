package server

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
)

func TestStatus_ForPeople(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	process := caddymodule.Process{
		Version: "v1", Home: "/h", PID: 7, StartedAt: start, Addresses: []string{"http://a"}, Pages: []string{"http://a", "http://b"}, Sandbox: "Landlock",
		Engines: []node.FoundEngine{
			{Name: "llama_server", Executable: "/bin/llama-server", Sandbox: "Landlock"},
			{Name: "mlx_lm", Executable: "/bin/python3", Sandbox: "off: because"},
			{Name: "other", Problem: "there is none", Sandbox: "off: why not"},
		},
	}
	const begin = "lmcaddy v1 is running on /h, as process 7, for 3s.\nIt serves on http://a.\nIts page for browsers is at http://a.\nEngines' sandbox: Landlock.\n"
	const engines = "\nENGINE        EXECUTABLE\nllama_server  /bin/llama-server\nmlx_lm        /bin/python3\nother         -\n"
	instance := resource.Instance{ID: "m"}
	for name, c := range map[string]struct {
		status serverStatus
		want   string
	}{
		"its engines": {
			serverStatus{Process: &process},
			begin + "Sandbox of mlx_lm: off: because.\nNo model is loaded.\n" + engines,
		},
		"with a model": {
			serverStatus{Process: &process, Instances: []resource.Instance{instance}},
			begin + "Sandbox of mlx_lm: off: because.\n" + engines + "\nINSTANCE  CONTEXT\nm         0\n",
		},
		"another machine": {
			serverStatus{Server: "http://b", Instances: []resource.Instance{instance}},
			"A server answers at http://b.\n\nINSTANCE  CONTEXT\nm         0\n",
		},
	} {
		var out strings.Builder
		if err := c.status.write(&out, start.Add(3*time.Second)); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
