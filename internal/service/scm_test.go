package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInstall_Windows(t *testing.T) {
	t.Parallel()
	f := newHost(t, "windows", -1)
	s := Service{Scope: System, Program: `C:\Program Files\lmcaddy\lmcaddy.exe`, Config: `C:\ProgramData\lmcaddy\Caddyfile`, Home: `C:\ProgramData\lmcaddy`}
	m, err := New(f.Host, s)
	if err != nil {
		t.Fatal(err)
	}
	f.fails["sc.exe query"] = exit(1060)
	if _, err := m.Install(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`sc.exe query lmcaddy`,
		`sc.exe create lmcaddy binPath= "C:\Program Files\lmcaddy\lmcaddy.exe" run --config C:\ProgramData\lmcaddy\Caddyfile start= auto obj= NT SERVICE\lmcaddy DisplayName= lmcaddy model server`,
		`sc.exe description lmcaddy Serves models over OpenAI-style, Anthropic-style, Ollama's and LM Studio's APIs.`,
		`sc.exe failure lmcaddy reset= 86400 actions= restart/5000/restart/5000/restart/60000`,
		`sc.exe failureflag lmcaddy 1`,
		`reg.exe add HKLM\SYSTEM\CurrentControlSet\Services\lmcaddy /v Environment /t REG_MULTI_SZ /d LMCADDY_HOME=C:\ProgramData\lmcaddy /f`,
		`icacls.exe C:\ProgramData\lmcaddy /inheritance:r /grant NT SERVICE\lmcaddy:(OI)(CI)F /grant *S-1-5-32-544:(OI)(CI)F`,
		`sc.exe start lmcaddy`,
	}
	if diff := cmp.Diff(want, f.calls); diff != "" {
		t.Errorf("the calls (-want +got):\n%s", diff)
	}
	f.calls, f.fails = nil, map[string]error{}
	if err := m.Uninstall(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	want = []string{"sc.exe query lmcaddy", "powershell.exe -NoProfile -Command Stop-Service -Name lmcaddy", "sc.exe delete lmcaddy"}
	if diff := cmp.Diff(want, f.calls); diff != "" {
		t.Errorf("the calls (-want +got):\n%s", diff)
	}
	if _, err := m.Install(t.Context(), false); err == nil {
		t.Error("a service that exists was replaced")
	}
	f.calls, f.fails = nil, map[string]error{"sc.exe query": exit(1060), "reg.exe": exit(5)}
	if _, err := m.Install(t.Context(), false); err == nil || f.calls[len(f.calls)-1] != "sc.exe delete lmcaddy" {
		t.Errorf("half a service is left: error %v, calls %q", err, f.calls)
	}
}
