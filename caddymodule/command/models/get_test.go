package models

import (
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit/kittest"
	"github.com/lmcaddy/lmcaddy/internal/client"
)

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
			out, _, err := kittest.TalkTo(t, DefineGet, tt.answers, tt.arguments...)
			kittest.WantTalk(t, tt.out, tt.err, out, err)
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
	out, _, err := kittest.TalkTo(t, DefineLS, map[string]string{"GET /api/v1/models": `{"models":[
		{"key":"a/long-name@q4_k_m","type":"llm","params_string":"4B","quantization":{"name":"Q4_K_M"},"size_bytes":2500000000,"max_context_length":40960,"loaded_instances":[{},{}]},
		{"key":"b/embed","type":"embedding","params_string":null,"quantization":null,"size_bytes":1000,"max_context_length":512,"loaded_instances":[]}],
		"broken":[{"key":"c/cut","path":"c/cut/x.gguf","error":"it ends in the middle."}]}`, "GET /api/v1/models/companions": `{"companions":[]}`})
	kittest.WantTalk(t, `MODEL               TYPE       PARAMS  QUANT   SIZE    CONTEXT  LOADED
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
		_, _, err := kittest.TalkTo(t, DefineUnload, map[string]string{"GET /api/v1/models": `{"models":[
			{"key":"p/a","loaded_instances":[{"id":"p/a"},{"id":"p/a:2"}]},{"key":"p/b","loaded_instances":[{"id":"p/b"}]},{"key":"p/c","loaded_instances":[]}]}`}, name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
