package mlxlm

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	const last = " --model /models/m --host 127.0.0.1 --port 4711"
	const rest = "--allowed-origins none --max-tokens 2147483647 --decode-concurrency 4 --prompt-concurrency 4"
	const sampling = " --temp 0.8 --top-p 0.95 --min-p 0.05"
	for name, c := range map[string]struct {
		change func(*schedule.Spec, *process.Build)
		want   string
	}{
		"as it comes": {
			func(*schedule.Spec, *process.Build) {}, rest + " --prompt-cache-size 16" + sampling + " --top-k 40",
		},
		"a budget": {func(s *schedule.Spec, _ *process.Build) {
			s.Model.SizeBytes, s.PromptCache, s.Reserve, s.Memory = 1000, 50, 50, 1000+50+7+schedule.RuntimeMemory
		}, rest + " --prompt-cache-size 16 --prompt-cache-bytes 57" + sampling + " --top-k 40"},
		"owners apart":       {func(s *schedule.Spec, _ *process.Build) { s.Private, s.PromptCache = true, 50 }, rest + " --prompt-cache-size 0" + sampling + " --top-k 40"},
		"a tiny vocabulary":  {func(s *schedule.Spec, _ *process.Build) { s.Model.Vocabulary = 40 }, rest + " --prompt-cache-size 16" + sampling},
		"a small vocabulary": {func(s *schedule.Spec, _ *process.Build) { s.Model.Vocabulary = 41 }, rest + " --prompt-cache-size 16" + sampling + " --top-k 40"},
		"many requests": {
			func(s *schedule.Spec, _ *process.Build) { s.Parallel = 16 },
			"--allowed-origins none --max-tokens 2147483647 --decode-concurrency 16 --prompt-concurrency 8 --prompt-cache-size 64" + sampling + " --top-k 40",
		},
		"an old version": {
			func(_ *schedule.Spec, b *process.Build) {
				b.Flags = map[string]string{"--model": "", "--max-tokens": "", "--temp": ""}
			},
			"--max-tokens 2147483647 --temp 0.8",
		},
		"words before and after": {func(s *schedule.Spec, b *process.Build) {
			b.Args, b.Flags, s.Args = []string{"-m", "mlx_lm", "server"}, map[string]string{"--model": ""}, []string{"--temp", "0"}
		}, "-m mlx_lm server --temp 0"},
		"another address": {func(s *schedule.Spec, b *process.Build) {
			b.Flags, s.Args = map[string]string{"--model": ""}, []string{"--host", "0.0.0.0", "--port", "80", "--model", "/models/x"}
		}, "--host 0.0.0.0 --port 80 --model /models/x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &schedule.Spec{Model: catalog.Model{Path: "/models/m"}, Parallel: 4}
			b := process.Build{Path: "/bin/x"}
			c.change(s, &b)
			got := (&Process{}).Command(process.Launch{Spec: s, Port: 4711}, b)
			if diff := cmp.Diff(c.want+last, strings.Join(got.Args, " ")); diff != "" || got.Path != "/bin/x" || !got.Guard {
				t.Errorf("path %s, guard %t, arguments (-want +got):\n%s", got.Path, got.Guard, diff)
			}
		})
	}
}

func TestCommand_HasNoSecretsAndStaysOffline(t *testing.T) {
	t.Setenv("HF_TOKEN", "secret")
	t.Setenv("PYTHONPATH", "/elsewhere")
	t.Setenv("PATH", "/opt/bin")
	env := environment()
	for _, want := range []string{"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "PATH=/opt/bin", "PYTHONUNBUFFERED=1"} {
		if !slices.Contains(env, want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
	for _, v := range env {
		if strings.HasPrefix(v, "HF_TOKEN") || strings.HasPrefix(v, "PYTHONPATH") || v == "PATH=/dev/null" {
			t.Errorf("the environment has %s", v)
		}
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model catalog.Model
		want  string
	}{
		"a chat model":       {catalog.Model{Key: "a/b", Type: catalog.TypeLLM}, ""},
		"an embedding model": {catalog.Model{Key: "a/b", Type: catalog.TypeEmbedding}, "The model a/b is an embedding model, which mlx_lm.server can't run: use one in the GGUF format."},
		"a program":          {catalog.Model{Key: "a/b", Type: catalog.TypeLLM, HasCode: true}, "The model a/b brings a program of its own, which isn't run: use a model that mlx_lm.server knows by itself."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := Engine().Runs(&c.model); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("error %q, want %q", got, c.want)
			}
		})
	}
}

func TestFixed(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int64{
		"":                                              -1,
		"--prompt-cache-bytes 1000":                     1000,
		"--prompt-cache-bytes=512M":                     512e6,
		"--prompt-cache-bytes 1.5gb":                    1.5e9,
		"--prompt-cache-bytes":                          -1,
		"--prompt-cache-bytes much":                     -1,
		"--prompt-cache-bytes -1":                       -1,
		"--temp 0 --prompt-cache-size 1000":             -1,
		"--prompt-cache-bytes 1 --prompt-cache-bytes 2": 2,
	} {
		got := int64(-1)
		if fixed := Engine().Fixed(strings.Fields(args)); fixed.PromptCache != nil {
			got = *fixed.PromptCache
		}
		if got != want {
			t.Errorf("%q: %d bytes, want %d", args, got, want)
		}
	}
}
