package command

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/client"
)

// talkTo runs a command with a server that answers as a table of "METHOD path" says: JSON, a stream of events, or
// after an exclamation mark an error.
func talkTo(t *testing.T, command func(*cobra.Command), answers map[string]string, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.Method+" "+r.URL.Path]
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error":{"type":"model_not_found","message":"Not ` + r.URL.Path + `."}}`
		case strings.HasPrefix(answer, "!"):
			w.WriteHeader(http.StatusBadRequest)
			answer = answer[1:]
		case strings.HasPrefix(answer, "data:"):
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	var out, errs bytes.Buffer
	cmd := &cobra.Command{Use: "x"}
	command(cmd)
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(append(arguments, "--host", server.URL))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// wantTalk checks what a command has printed, or the error that it ended with.
func wantTalk(t *testing.T, want, wantError, got string, err error) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" && wantError == "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if (err == nil) != (wantError == "") || err != nil && !strings.Contains(err.Error(), wantError) {
		t.Errorf("error %v, want %q", err, wantError)
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	const (
		start  = "POST /api/v1/models/download"
		events = "GET /api/v1/models/download/job_1/events"
		going  = `data: {"job":{"job_id":"job_1","status":"downloading","downloaded_bytes":500000,"total_size_bytes":1000000}}` + "\n\n"
		model  = "qwen/qwen3-4b"
	)
	begun := `{"job_id":"job_1","status":"downloading"}`
	for name, tt := range map[string]struct {
		answers   map[string]string
		arguments []string
		out, err  string
	}{
		"to its end": {
			map[string]string{start: begun, events: going + `data: {"job":{"status":"completed","total_size_bytes":1000000}}` + "\n\n"},
			[]string{model},
			model + " is downloaded (1.0 MB).\n", "",
		},
		"failing": {
			map[string]string{start: begun, events: `data: {"job":{"status":"failed","error":{"message":"The disk is full."}}}` + "\n\n"},
			[]string{model},
			"", "the download of " + model + " failed: The disk is full.",
		},
		"paused by another": {
			map[string]string{start: begun, events: `data: {"job":{"status":"paused"}}` + "\n\n"},
			[]string{model},
			"", "lmcaddy get --resume job_1",
		},
		"cut":            {map[string]string{start: begun, events: going}, []string{model}, "", "lmcaddy get --follow job_1"},
		"not waited for": {map[string]string{start: begun}, []string{model, "--no-wait"}, "job_1\n", ""},
		"there already":  {map[string]string{start: `{"status":"already_downloaded"}`}, []string{model}, model + " is already downloaded.\n", ""},
		"refused":        {nil, []string{model}, "", `there is no model "` + model + `" to download`},
		"pause":          {map[string]string{"POST /api/v1/models/download/job_1/pause": "{}"}, []string{"--pause", "job_1"}, "job_1 is paused.\n", ""},
		"cancel":         {map[string]string{"POST /api/v1/models/download/job_1/cancel": "{}"}, []string{"--cancel", "job_1"}, "job_1 is cancelled.\n", ""},
		"resume": {
			map[string]string{
				"POST /api/v1/models/download/job_1/resume": "{}",
				events: `data: {"job":{"status":"completed","model":"a/b","total_size_bytes":2000}}` + "\n\n",
			}, []string{"--resume", "job_1"}, "a/b is downloaded (2.0 kB).\n", "",
		},
		"two things":      {nil, []string{model, "--pause", "job_1"}, "", "either"},
		"nothing's quant": {nil, []string{"--quantization", "q4"}, "", "MODEL"},
		"list": {
			map[string]string{"GET /api/v1/models/download": `{"jobs":[
				{"job_id":"job_2","status":"failed","model":"a/b","error":{"message":"No such model."}},
				{"job_id":"job_1","status":"completed","model":"c/d","downloaded_bytes":5000,"total_size_bytes":5000}]}`},
			nil,
			"JOB    MODEL  STATUS     PROGRESS\njob_2  a/b    failed     No such model.\njob_1  c/d    completed  5.0 kB of 5.0 kB, 100%\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := talkTo(t, defineGet, tt.answers, tt.arguments...)
			wantTalk(t, tt.out, tt.err, out, err)
		})
	}
}

func TestGet_Progress(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, job := range map[string]client.Job{
		"0 B of 0 B": {},
		"0 B of 3.0 GB, 0%, waits for other downloads":                       {TotalBytes: 3e9, Waiting: true},
		"1.5 GB of 3.0 GB, 50%, 10 MB/s, 2m30s left":                         {Bytes: 15e8, TotalBytes: 3e9, PerSecond: 1e7, Estimate: now.Add(150 * time.Second)},
		"1.5 GB of 3.0 GB, 50%, The hub says nothing; it is tried once more": {Bytes: 15e8, TotalBytes: 3e9, PerSecond: 1e7, Trouble: "The hub says nothing; it is tried once more"},
	} {
		if got := progressOf(job, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLS_Table(t *testing.T) {
	t.Parallel()
	out, _, err := talkTo(t, defineLS, map[string]string{"GET /api/v1/models": `{"models":[
		{"key":"a/long-name@q4_k_m","type":"llm","params_string":"4B","quantization":{"name":"Q4_K_M"},"size_bytes":2500000000,"max_context_length":40960,"loaded_instances":[{},{}]},
		{"key":"b/embed","type":"embedding","params_string":null,"quantization":null,"size_bytes":1000,"max_context_length":512,"loaded_instances":[]}],
		"broken":[{"key":"c/cut","path":"c/cut/x.gguf","error":"it ends in the middle."}]}`})
	wantTalk(t, `MODEL               TYPE       PARAMS  QUANT   SIZE    CONTEXT  LOADED
a/long-name@q4_k_m  llm        4B      Q4_K_M  2.5 GB  40960    loaded (2)
b/embed             embedding  -       -       1.0 kB  512      -

These can't be used:
c/cut: it ends in the middle (c/cut/x.gguf)
`, "", out, err)
}

// A server without the home's socket, such as another program of the same API, is enough for --host.
func TestUnload_ByTheModelsName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"b": "Not /api/v1/models/unload.", "a": "several instances: name one of p/a, p/a:2", "c": "Not /api/v1/models/unload."} {
		_, _, err := talkTo(t, defineUnload, map[string]string{"GET /api/v1/models": `{"models":[
			{"key":"p/a","loaded_instances":[{"id":"p/a"},{"id":"p/a:2"}]},{"key":"p/b","loaded_instances":[{"id":"p/b"}]},{"key":"p/c","loaded_instances":[]}]}`}, name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// answerOf is what a printer makes of a chat's events.
func answerOf(t *testing.T, terminal bool, events ...client.ChatEvent) (out, notes string) {
	t.Helper()
	var to, aside bytes.Buffer
	p := newAnswerPrinter(&to, &aside)
	p.terminal, p.colored, p.waiting.terminal = terminal, terminal, terminal
	for _, e := range events {
		if err := p.show(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	return to.String(), aside.String()
}

func TestAnswer_ThinkingIsForTerminals(t *testing.T) {
	t.Parallel()
	events := []client.ChatEvent{
		{Type: "chat.start"},
		{Type: "model_load.progress", Progress: 0.5},
		{Type: "reasoning.delta", Content: "Hm."},
		{Type: "message.delta", Content: "\n\n"},
		{Type: "message.delta", Content: "\nHi"},
		{Type: "message.delta", Content: " you"},
	}
	out, notes := answerOf(t, false, events...)
	if out != "Hi you\n" || notes != "" {
		t.Errorf("%q, %q", out, notes)
	}
	out, notes = answerOf(t, true, events...)
	if out != "Hi you\n" || !strings.Contains(notes, "loading the model 50%") || !strings.HasSuffix(notes, dim+"Hm."+plain+"\n") {
		t.Errorf("%q, %q", out, notes)
	}
	out, notes = answerOf(t, true, client.ChatEvent{Type: "reasoning.delta", Content: "Hm.\n"}, client.ChatEvent{Type: "message.delta", Content: "Hi\n"})
	if out != "Hi\n" || notes != dim+"Hm.\n"+plain {
		t.Errorf("%q, %q", out, notes)
	}
	if out, notes = answerOf(t, true); out+notes != "" {
		t.Errorf("nothing gives %q, %q", out, notes)
	}
}
