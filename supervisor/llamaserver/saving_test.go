package llamaserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func savingSpec(args ...string) *schedule.Spec {
	s := specOf("m", 2)
	s.Model.Type, s.Args = catalog.TypeLLM, args
	return s
}

var savingBuild = process.Build{Flags: map[string]string{savePath: "PATH path to save slot kv cache"}}

func TestProcess_CanSave(t *testing.T) {
	t.Parallel()
	embedding := savingSpec()
	embedding.Model.Type = catalog.TypeEmbedding
	for name, tt := range map[string]struct {
		spec  *schedule.Spec
		build process.Build
		want  bool
	}{
		"a chat model":               {savingSpec("--threads", "1"), savingBuild, true},
		"an old build":               {savingSpec(), process.Build{}, false},
		"an embedding model":         {embedding, savingBuild, false},
		"it sleeps":                  {savingSpec("--sleep-idle-seconds", "60"), savingBuild, false},
		"nothing is used again":      {savingSpec("--no-cache-prompt"), savingBuild, false},
		"with underscores":           {savingSpec("--no_cache_prompt"), savingBuild, false},
		"one cache for all slots":    {savingSpec("-kvu"), savingBuild, false},
		"another number of slots":    {savingSpec("-np", "3"), savingBuild, false},
		"a folder of the operator's": {savingSpec("--slot-save-path", "/d"), savingBuild, false},
	} {
		if got := new(Process).CanSave(tt.spec, tt.build); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// Every pair of launches but the first of a name is as different, or as alike, as it says.
func TestProcess_Print(t *testing.T) {
	t.Parallel()
	with := func(change func(*schedule.Spec)) *schedule.Spec {
		s := savingSpec("--threads", "1")
		change(s)
		return s
	}
	for name, tt := range map[string]struct {
		spec  *schedule.Spec
		build process.Build
		same  bool
	}{
		"the context":            {with(func(s *schedule.Spec) { s.ContextLength = 99 }), savingBuild, true},
		"batches":                {with(func(s *schedule.Spec) { s.BatchSize = 99 }), savingBuild, true},
		"the prompt cache":       {with(func(s *schedule.Spec) { s.PromptCache = 99 }), savingBuild, true},
		"threads and logs":       {savingSpec("-t", "4", "--mlock", "--metrics", "-lv", "3", "--ctx_size", "100"), savingBuild, true},
		"a value in one":         {savingSpec("--threads=4"), savingBuild, true},
		"slots":                  {with(func(s *schedule.Spec) { s.Parallel = 3 }), savingBuild, false},
		"flash attention":        {with(func(s *schedule.Spec) { s.FlashAttention = schedule.On }), savingBuild, false},
		"experts":                {with(func(s *schedule.Spec) { s.Experts = 3 }), savingBuild, false},
		"the type of the cache":  {savingSpec("-ctk", "q8_0"), savingBuild, false},
		"an override":            {savingSpec("--override-kv", "llama.rope.freq_base=float:5"), savingBuild, false},
		"a value that is a flag": {savingSpec("--override-kv", "--threads", "1"), savingBuild, false},
		"devices":                {savingSpec(), process.Build{Flags: savingBuild.Flags, Devices: []process.Device{{Name: "CUDA0"}}}, false},
	} {
		first, other := new(Process).Print(savingSpec("--threads", "1"), savingBuild), new(Process).Print(tt.spec, tt.build)
		if (first == other) != tt.same {
			t.Errorf("%s: %q and %q; want the same: %t", name, first, other, tt.same)
		}
	}
}

// Another adapter under the same name makes other states.
func TestProcess_PrintOfAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.gguf")
	for _, args := range [][]string{{"--lora", path}, {"--lora-scaled", "/none.gguf:1," + path + ":0.5"}} {
		seen := map[string]bool{}
		for i, content := range []string{"a", "ab", "cd"} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, time.Time{}, time.Unix(int64(1000+i), 0)); err != nil {
				t.Fatal(err)
			}
			seen[new(Process).Print(savingSpec(args...), savingBuild)] = true
		}
		if len(seen) != 3 {
			t.Errorf("%v: %v", args, seen)
		}
	}
}

func TestProcess_SlotRequests(t *testing.T) {
	t.Parallel()
	p := new(Process)
	path, body := p.Save(3, "a b")
	if path != "/slots/3?action=save" || string(body) != `{"filename":"a b"}` {
		t.Errorf("%s %s", path, body)
	}
	path, body = p.Restore(0, "ab")
	if path != "/slots/0?action=restore" || string(body) != `{"filename":"ab"}` {
		t.Errorf("%s %s", path, body)
	}
}

func TestProcess_SlotAnswers(t *testing.T) {
	t.Parallel()
	p := new(Process)
	want := process.SlotState{Tokens: 273, Bytes: 843172, Took: 465 * time.Microsecond}
	got, err := p.Saved([]byte(`{"id_slot":0,"filename":"a.bin","n_saved":273,"n_written":843172,"timings":{"save_ms":0.465}}`))
	if err != nil || got != want {
		t.Errorf("saved %+v, %v", got, err)
	}
	got, err = p.Restored([]byte(`{"id_slot":0,"filename":"a.bin","n_restored":273,"n_read":843172,"timings":{"restore_ms":0.465}}`))
	if err != nil || got != want {
		t.Errorf("restored %+v, %v", got, err)
	}
	for _, answer := range []string{``, `{}`, `[]`, `{"n_restored":1}`, `{"n_saved":-1}`, `{"n_saved":1,"n_written":-5}`, `{"n_saved":"1"}`} {
		if got, err := p.Saved([]byte(answer)); err == nil {
			t.Errorf("%s: %+v", answer, got)
		}
		if got, err := p.Restored([]byte(strings.ReplaceAll(answer, "n_restored", "n_saved"))); err == nil {
			t.Errorf("restored: %s: %+v", answer, got)
		}
	}
}

// The folder is an argument only if there is one, and the build takes it.
func TestProcess_CommandWithAFolderForStates(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		states string
		build  process.Build
		want   bool
	}{
		"a folder":     {"/warm/x", savingBuild, true},
		"none":         {"", savingBuild, false},
		"an old build": {"/warm/x", process.Build{}, false},
	} {
		cmd := new(Process).Command(process.Launch{Spec: savingSpec(), States: tt.states}, tt.build)
		if got := strings.Contains(strings.Join(cmd.Args, " "), savePath+" /warm/x"); got != tt.want {
			t.Errorf("%s: %q", name, cmd.Args)
		}
	}
}
