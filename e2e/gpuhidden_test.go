package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// ownDriver copies the driver of the home's GPUs to a folder that the sandbox doesn't show, and names it to the engine.
func ownDriver(t *testing.T, h *harness.Home) (file string) {
	t.Helper()
	original, err := os.ReadFile(harness.VulkanDriver(t))
	if err != nil {
		t.Fatal(err)
	}
	path := gjson.GetBytes(original, "ICD.library_path").Str
	library, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h.WriteFile("driver.so", string(library))
	file = h.WriteFile("driver.json", string(bytes.Replace(original, []byte(path), []byte("./driver.so"), 1)))
	h.Env = append(h.Env, "VK_DRIVER_FILES="+file)
	return file
}

// wantFault checks that a fault of a GPU is told everywhere; empty: there is none.
func wantFault(s *harness.Server, text string) {
	s.T.Helper()
	all, _ := seen(s, "")
	faults := all.Get("faults").Array()
	doctor := s.Command("doctor").Output
	if text == "" {
		if len(faults) > 0 || health(s) != "ok" || !strings.Contains(doctor, "The engine computes on Vulkan0") || logged(s, "sandbox") {
			s.T.Errorf("faults %v, health %s, doctor:\n%s", faults, health(s), doctor)
		}
		return
	}
	if len(faults) != 1 || !strings.Contains(faults[0].Str, text) {
		s.T.Errorf("faults %v", faults)
	}
	if got := s.Command("ps").Output; !strings.Contains(got, text) {
		s.T.Errorf("ps:\n%s", got)
	}
	if got := health(s); got != "degraded gpu_unusable" {
		s.T.Errorf("health %s", got)
	}
	if unfolded := strings.Join(strings.Fields(doctor), " "); !strings.Contains(unfolded, text) || !strings.Contains(doctor, "1 problem") {
		s.T.Errorf("doctor:\n%s", doctor)
	}
	if !logged(s, text) {
		s.T.Error("no warning says so")
	}
}

// A driver that isn't where drivers usually are is found by the wide sandbox, or by the narrow one that is told of it.
func TestGPU_ADriverElsewhere(t *testing.T) {
	for name, wide := range map[string]bool{"not named": true, "named": false} {
		t.Run(name, func(t *testing.T) {
			h := harness.NewVulkanHome(t, 1)
			var c harness.Config
			if folder := filepath.Dir(ownDriver(t, h)); !wide {
				c.Engine = []string{"sandbox_read " + folder}
			}
			s := startGPU(t, h, c)
			load(s, harness.Model)
			wantOn(s, harness.Model, "Vulkan0")
			if _, in := seen(s, harness.Model); !strings.HasPrefix(in.Get("sandbox").Str, "landlock, ABI ") || strings.HasSuffix(in.Get("sandbox").Str, ", wide") != wide {
				t.Errorf("%s", in.Raw)
			}
			wantFault(s, "")
		})
	}
}

// An engine whose script finds the driver by a program, which no sandbox lets it execute unless it is named, sees the GPU only outside.
func TestGPU_HiddenByTheSandbox(t *testing.T) {
	const hidden = "The engine llama_server can't use Vulkan0 in its sandbox, so "
	for name, tt := range map[string]struct {
		engine    []string // its lines
		named     bool
		protected bool   // the site has lm_auth
		devices   string // where the model is
		fault     string
		sandbox   string // begins with this
	}{
		"by default":    {devices: "Vulkan0", fault: hidden + "it runs without one.", sandbox: "off: its GPU can't be used in it"},
		"with lm_auth":  {protected: true, fault: hidden + "models run on the processor", sandbox: "landlock, ABI "},
		"always":        {engine: []string{"sandbox on"}, fault: hidden + "models run on the processor", sandbox: "landlock, ABI "},
		"never":         {engine: []string{"sandbox off"}, devices: "Vulkan0", sandbox: "off"},
		"what it needs": {named: true, devices: "Vulkan0", sandbox: "landlock, ABI "},
	} {
		t.Run(name, func(t *testing.T) {
			h := harness.NewVulkanHome(t, 1)
			finder := h.WriteFile("finder", "#!/bin/sh\necho "+harness.VulkanDriver(t)+"\n")
			script := h.WriteFile("llama-server", fmt.Sprintf("#!/bin/sh\nVK_DRIVER_FILES=$(%s) || VK_DRIVER_FILES=none\nexport VK_DRIVER_FILES\nexec %s \"$@\"\n", finder, realEngine(t, h)))
			for _, path := range []string{finder, script} {
				if err := os.Chmod(path, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			c := harness.Config{Engine: slices.Concat([]string{"path " + script, "sandbox_read " + filepath.Dir(filepath.Dir(realEngine(t, h)))}, tt.engine)}
			if tt.named {
				c.Engine = append(c.Engine, "sandbox_read "+finder)
			}
			if tt.protected {
				c.Site = []string{"lm_auth"}
			}
			s := startGPU(t, h, c)
			if tt.protected {
				s = s.As(created(t, h, "--name", "somebody"))
			}
			load(s, harness.Model)
			wantOn(s, harness.Model, tt.devices)
			if _, in := seen(s, harness.Model); !strings.HasPrefix(in.Get("sandbox").Str, tt.sandbox) {
				t.Errorf("%s", in.Raw)
			}
			wantFault(s, tt.fault)
		})
	}
}

// A model whose GPU is gone is on the processor, and that is said for as long as it is gone. When it is back, the next load finds it.
func TestGPU_GoneAndBack(t *testing.T) {
	const gone = "The engine llama_server doesn't find Vulkan0 any more"
	h := harness.NewVulkanHome(t, 1)
	file := ownDriver(t, h)
	s := startGPU(t, h, harness.Config{Engine: []string{"sandbox_read " + filepath.Dir(file)}})
	unload := func() {
		t.Helper()
		s.Post(harness.UnloadPath, harness.Fields{"instance_id": harness.Model}).Want(t, http.StatusOK)
	}
	load(s, harness.Model)
	for name, again := range map[string]func(){
		"loaded":       func() { load(s, harness.Model) },
		"on first use": func() { s.Chat(harness.Ask(capital).With("max_tokens", 1)) },
	} {
		wantOn(s, harness.Model, "Vulkan0")
		unload()
		if err := os.Rename(file, file+".away"); err != nil {
			t.Fatal(err)
		}
		stream := events(s, "", "", "", "")
		stream.until("events.start")
		loaded := load(s, harness.Model)
		_, end := stream.until("model_load.end")
		wantSplit(s, harness.Model, loaded, end, "the processor")
		harness.Eventually(t, harness.Patience, "the fault is known", func() bool { all, _ := seen(s, ""); return all.Get("faults.#").Int() > 0 })
		wantFault(s, gone)
		unload()
		load(s, harness.Model)
		wantFault(s, gone)
		unload()
		if err := os.Rename(file+".away", file); err != nil {
			t.Fatal(err)
		}
		t.Logf("it is back, and the model is %s", name)
		again()
	}
	wantOn(s, harness.Model, "Vulkan0")
	wantFault(s, "")
}
