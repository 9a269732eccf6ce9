package home

import "testing"

func TestAbsolute(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	t.Chdir("/")
	for path, want := range map[string]string{
		"/srv/models": "/srv/models", "models": "/models", "~": "/home/ann", "~/models": "/home/ann/models", "~bob/models": "/~bob/models",
		"./~": "/~",
	} {
		if got := Absolute(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
