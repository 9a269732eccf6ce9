package node

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

func TestHidePaths(t *testing.T) {
	t.Parallel()
	n := &Node{base: &base{home: home.Dir("/home/ann lee/.lmcaddy")}}
	n.settings.Store(&Settings{ModelsDirs: []string{"/srv/my models"}, Engines: llamaServer(EngineSettings{Path: "/opt/our engine/bin/llama-server"})})
	for text, want := range map[string]string{
		"it is broken.": "it is broken.",
		"GET /api/v1/models lists them; POST /v1/messages asks.":                                                           "GET /api/v1/models lists them; POST /v1/messages asks.",
		"see https://huggingface.co/a/b and and/or":                                                                        "see https://huggingface.co/a/b and and/or",
		"open /home/ann lee/.lmcaddy/models/a/b/c.gguf: permission denied":                                                 "open c.gguf: permission denied",
		"failed to open '/srv/my models/a/b.gguf'":                                                                         "failed to open 'b.gguf'",
		"/opt/our engine/bin/llama-server can't be started: fork/exec /opt/our engine/bin/llama-server: permission denied": "llama-server can't be started: fork/exec llama-server: permission denied",
		"in \"/home/ann lee/.lmcaddy\", or /etc/ssl/private/key.pem.":                                                      "in \".lmcaddy\", or key.pem.",
		"path=/usr/lib/x.so, C:\\Users\\Ann\\m.gguf (/tmp/y)":                                                              "path=x.so, m.gguf (y)",
		"failed to open '/srv/another place/deep/a (1).gguf' and \"/x y/z\"":                                               "failed to open 'a (1).gguf' and \"z\"",
		"/a": "a",
	} {
		if got := n.HidePaths(text); got != want {
			t.Errorf("%s\n  is %q,\nwant %q", text, got, want)
		}
	}
}
